"""The sections of a report about the data, an earlier sketch, and how the report was made."""

import platform
from importlib.metadata import version

import numpy as np

from ckm._analysis.comparison import LEVEL
from ckm._analysis.profiling import column_deviations
from ckm._core.preparation import categories_of, unprepared
from ckm._core.projection import Projection
from ckm._decoding.solution import centroids_of
from ckm._display.report import charts
from ckm._display.report.content import Content
from ckm._display.report.page import Section, facts, table
from ckm._display.report.svg import short, text_of
from ckm._display.tables import readable_bytes
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import LabelArray


def columns(content: Content) -> Section:
    """What was read: the columns, what is odd about them, and their distributions."""
    sketch = content.sketch
    shown = content.shown_columns
    names = content.profile.columns
    deviations = column_deviations(sketch)
    has_bounds = sketch.frequencies.projection is None
    shares = content.variance_shares
    header = ["column", "mean", "standard deviation", "share of variance"]
    header += ["smallest", "largest"] if has_bounds else []
    rows = []
    for i in shown:
        cells = [short(float(sketch.mean[i])), short(float(deviations[i])), f"{shares[i]:.0%}"]
        if has_bounds:
            cells += [short(float(sketch.lower[i])), short(float(sketch.upper[i]))]
        rows.append([text_of(content.sketched_name(int(i))), *cells])
    left = len(names) - len(shown)
    more = f"<p>{left} further columns are left out.</p>" if left else ""
    notes = "".join(
        f"<li><strong>{text_of(name)}</strong>: {text_of(sentence)}</li>"
        for name, sentence in content.column_notes()
    )
    warned = f"<h3>Worth a second look</h3><ul>{notes}</ul>" if notes else ""
    html = f"{warned}{table(header, rows, 'Columns of the data')}{more}{_densities(content)}"
    return Section("columns", "The data", html)


def _densities(content: Content) -> str:
    """The distribution of each column, coloured by cluster."""
    if content.solution.distribution is None:
        return ""
    owners = _owners(content)
    figures = "".join(
        f"<figure><figcaption><strong>{text_of(content.sketched_name(int(i)))}</strong></figcaption>"
        f"{charts.density_chart(content.solution, int(i), content.sketched_name(int(i)), owners)}"
        "</figure>"
        for i in content.shown_columns
    )
    note = (
        '<p class="soft">Distributions as the sketch tells them, stacked in the colours of the '
        "clusters.</p>"
    )
    return f'{note}<div class="many">{figures}</div>'


def _owners(content: Content) -> LabelArray:
    """The cluster (q,) that each Gaussian of the recovered measure is nearest to."""
    measure = content.solution.distribution
    assert measure is not None
    means = measure.gaussians.means
    if isinstance(measure.projection, Projection):
        means = measure.mean + measure.projection.lift(means - measure.gaussians.mean)
    # Columns of categories are numbers already.
    rows = ArraySource(unprepared(means, content.solution.preparation))
    return np.asarray(centroids_of(content.solution).label(rows, n_jobs=1))


def comparison(content: Content) -> list[Section]:
    """What changed since an earlier sketch, if one was given."""
    found = content.comparison
    if found is None:
        return []
    summary = found.summary()
    low, high = found.effect_interval
    is_different = found.p_value < LEVEL
    said = "The data has changed." if is_different else "No change was found."
    level = "careful" if is_different else "good"
    sentence = (
        f"The probability of such differences by chance is {found.p_value:.2g}; their size, from 0 "
        f"to about 1.4, is {found.effect:.3g} ({low:.3g} to {high:.3g})."
    )
    rows = [[text_of(cell) for cell in row] for row in summary.rows]
    header = ["", "earlier", "now", "change", "p"]
    notes = "".join(f'<p class="small soft">{text_of(note)}</p>' for note in summary.notes)
    html = (
        f'<p class="verdict {level}"><strong>{said}</strong> {text_of(sentence)}</p>'
        f'<figure class="limited">{charts.changes_chart(found)}</figure>'
        f"{table(header, rows, 'Changes of columns and clusters')}"
        '<p class="small soft">Clusters here are those of both sketches together, numbered by '
        f"size; they are not the clusters above.</p>{notes}"
    )
    return [Section("change", "Since the earlier sketch", html)]


def making(content: Content) -> Section:
    """How it was made: enough to make it again."""
    sketch = content.sketch
    f = sketch.frequencies
    cells = 0 if sketch.cells is None else len(sketch.cells.anchors)
    bits = "the same bits on any machine, in any order of rows" if sketch.exact else "to rounding"
    pairs = [
        ("rows", f"{sketch.count:,}" + ("" if _is_unweighted(content) else ", weighted")),
        ("data", content.data_name or "not read for this report: it is made from the sketch alone"),
        ("sketch", f"{f.m:,} frequencies, {cells:,} cells, {readable_bytes(sketch.nbytes)}"),
        ("frequencies", f"{f.distribution}, adapted to the variance {f.scale:.6g}"),
        ("seed", "-" if f.seed is None else str(f.seed)),
        ("distances", f.metric + (", standardised columns" if f.column_units is not None else "")),
        *(("category", str(category)) for category in categories_of(f.preparation)),
        ("sums", bits),
        ("fingerprint", sketch.design.fingerprint),
        ("decoder", content.solution.decoder),
        ("number of clusters", "chosen from the curve" if content.is_chosen else "given"),
        ("status", content.solution.status.value),
        (
            "versions",
            f"ckm {version('compressive-kmeans')}, Python {platform.python_version()}, "
            f"NumPy {np.__version__}",
        ),
    ]
    if f.projection is not None:
        pairs.insert(3, ("projection", f"to {f.n} axes"))
    return Section("making", "How it was made", facts(pairs))


def _is_unweighted(content: Content) -> bool:
    return content.sketch.weight == content.sketch.count
