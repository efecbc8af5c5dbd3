"""The sections of a report about the clusters and their number."""

import numpy as np

from ckm._analysis.profile import describe_gap
from ckm._display.report import charts
from ckm._display.report.content import MIN_GAP, Content
from ckm._display.report.page import Section, table
from ckm._display.report.palette import color
from ckm._display.report.svg import short, text_of
from ckm._display.report.words import adverb, checks, verdict

# Columns that a card names.
_TRAITS = 4
# Standard deviations whose cells have the full colour.
_FULL_COLOR = 2.5
# Opacity of a full colour: text on it keeps a contrast of 4.5 on light and dark pages.
_FULL_OPACITY = 0.48
# What a gap says about a cluster and its nearest neighbour.
_NEAREST = {
    "slices of one cloud": "no gap to its neighbour",
    "overlapping": "overlaps its neighbour",
    "apart": "apart from its neighbours",
    "far apart": "far from its neighbours",
}


def top(content: Content) -> str:
    """The heading: how many clusters of what, and whether to trust them."""
    level, sentence = verdict(content)
    K = content.K
    n = len(content.profile.columns)
    value = content.profile.overall_gap
    apart = f" The clusters are {describe_gap(value)}." if np.isfinite(value) else ""
    lead = (
        f"{K} cluster{'s' * (K > 1)} in {content.sketch.count:,} rows of {n} column{'s' * (n > 1)}."
    )
    tiles = [
        ("rows", f"{content.sketch.count:,}"),
        ("columns", f"{n:,}"),
        ("clusters", f"{K}"),
        ("variance explained", f"{content.explained:.0%}"),
    ]
    if np.isfinite(value):
        tiles.append(("separation (0 to 1)", f"{content.profile.overall_separation:.2f}"))
    inner = "".join(f"<div><dt>{text_of(a)}</dt><dd>{text_of(b)}</dd></div>" for a, b in tiles)
    return (
        f'<h1>{text_of(content.title)}</h1><p class="lead">{text_of(lead)}{text_of(apart)}</p>'
        f'<p class="verdict {level}"><strong>{text_of(sentence)}</strong> '
        f'<a href="#trust">Why</a></p><dl class="tiles">{inner}</dl>'
    )


def clusters(content: Content) -> Section:
    """A card for each cluster, the largest first."""
    cards = "".join(_card(content, k) for k in content.by_share)
    left = content.K - len(content.by_share)
    more = f"<p>{left} smaller clusters are in the tables only.</p>" if left else ""
    note = (
        '<p class="soft">The largest first. Shares have 95 % intervals. Each cluster is named by '
        "the columns that set it apart from all other rows: its mean, and how far that is from the "
        "mean of the others, in standard deviations (sd) of the column.</p>"
    )
    return Section("clusters", "The clusters", f'{note}<ul class="cards">{cards}</ul>{more}')


def _card(content: Content, k: int) -> str:
    found = content.profile
    low, high = found.share_interval[k]
    share = found.shares[k]
    traits = found.traits(k, _TRAITS)
    heading = ", ".join(f"{adverb(value)} {name}" for name, value in traits[:2]) or "All rows"
    rows = share * content.sketch.count
    column = {name: i for i, name in enumerate(found.columns)}
    items = "".join(
        f"<li><span>{text_of(name)}</span>"
        f'<span class="value">{short(float(found.centroids[k, column[name]]))} '
        f"({contrast:+.1f} sd)</span></li>"
        for name, contrast in traits
    )
    bar = charts.share_bar(share, low, high, k, float(found.shares.max()))
    value = found.gaps[k]
    apart = f"; {_NEAREST[describe_gap(value)]}" if np.isfinite(value) else ""
    return (
        f'<li class="card"><div class="top">{_disc(k)}<h3>{text_of(_capital(heading))}</h3></div>'
        f'<div class="share">{share:.1%} <span>{low:.1%} to {high:.1%}</span></div>{bar}'
        f'<ul class="traits">{items}</ul>'
        f'<p class="small soft">about {rows:,.0f} rows{text_of(apart)}</p></li>'
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _disc(k: int, kind: str = "") -> str:
    return f'<span class="disc {kind}" style="background:{color(k)}">{k}</span>'


def plane(content: Content) -> Section:
    """The map, with a legend."""
    found = content.cluster_map
    source = "rows of the data" if found.is_data else "drawn from what the sketch tells"
    legend = "".join(
        f"<li><span>{_disc(k, 'little')}{_traits(content, k)}</span>"
        f'<span class="value">{content.profile.shares[k]:.1%}</span></li>'
        for k in content.by_share
    )
    covered = sum(share for _, share in found.axes)
    note = (
        f'<p class="small soft">Dots are {source}; an ellipse reaches two standard deviations. The '
        f"two axes show {covered:.0%} of the variance: clusters that overlap here may be apart "
        "along others.</p>"
    )
    html = (
        f'<div class="map"><figure>{charts.map_chart(found, content.K)}</figure>'
        f'<div><ul class="traits">{legend}</ul>{note}</div></div>'
    )
    return Section("map", "Where they lie", html)


def _traits(content: Content, k: int) -> str:
    named = content.profile.traits(k, 2)
    return text_of(", ".join(f"{adverb(value)} {name}" for name, value in named))


def profiles(content: Content) -> Section:
    """Centroids in the data's units, coloured by how they differ from other rows."""
    found = content.profile
    shown = content.shown_columns
    order = content.by_share
    header = ["column", *(f"{_disc(k, 'little')}{found.shares[k]:.0%}" for k in order)]
    rows = [
        [text_of(found.columns[i]), *(_colored(content, k, int(i)) for k in order)] for i in shown
    ]
    left = len(found.columns) - len(shown)
    more = f" {left} columns that tell clusters apart less are left out." if left else ""
    note = (
        '<p class="soft">Centroids in the units of the data, ± the standard deviation within the '
        "cluster. Orange is above, blue below the rest of the rows; the colour is full at "
        f"{_FULL_COLOR} standard deviations of the column.{text_of(more)}</p>"
    )
    html = note + table(header, rows, "Centroids by column and cluster") + _examples(content)
    return Section("profiles", "Profiles", html)


def _colored(content: Content, k: int, i: int) -> str:
    found = content.profile
    contrast = float(found.contrasts[k, i])
    strength = _FULL_OPACITY * min(1.0, abs(contrast) / _FULL_COLOR)
    side = "up" if contrast > 0 else "down"
    deviation = found.deviations[k, i]
    spread = f'<span class="soft">± {short(float(deviation))}</span>' if deviation >= 0 else ""
    return (
        f'<td style="background:rgba(var(--{side}),{strength:.2f})" '
        f'title="{contrast:+.1f} standard deviations">{short(float(found.centroids[k, i]))}'
        f"{spread}</td>"
    )


def _examples(content: Content) -> str:
    """Rows nearest to the centroids, if the data was at hand."""
    found = content.profile
    if found.examples is None or found.example_rows is None:
        return ""
    shown = content.shown_columns
    header = ["cluster", "row", *(text_of(found.columns[i]) for i in shown)]
    rows = [
        [_disc(k, "little"), f"{row:,}", *(short(float(values[i])) for i in shown)]
        for k in content.by_share
        for row, values in zip(found.example_rows[k], found.examples[k], strict=True)
        if row >= 0
    ]
    caption = "Rows nearest to the centroids"
    return f"<h3>{caption}, numbered from 0</h3>{table(header, rows, caption)}"


def numbers(content: Content) -> Section:
    """What the sketch says about other numbers of clusters."""
    curve = content.curve
    if curve is None:
        html = "<p>The sketch is too small to compare numbers of clusters.</p>"
        return Section("number", "How many clusters", html)
    said = ""
    other = ""
    if curve.suggestion is not None:
        said = f"The sketch suggests {curve.suggestion}. "
        other = f" The next best answer is {curve.runner_up}." if curve.runner_up else ""
    why = ""
    if content.is_chosen and curve.suggestion is None and content.K > 1:
        why = ", the most stable number above one"
        if np.nanmin(content.profile.gaps) >= MIN_GAP:
            why = ", the most clusters that are stable and have gaps between them"
    chosen = f" This report shows {content.K}{why}."
    captions = (
        "<strong>Variance left within clusters.</strong> It always falls; a number is clear where "
        "the fall ends. The band is what the sketch leaves open.",
        "<strong>Stability.</strong> The share of rows that would stay in their cluster on other "
        "data with the same sketch.",
    )
    html = (
        f"<p>{text_of(said)}{text_of(curve.reason)}{text_of(other)}{chosen}</p>"
        f'<div class="pair"><figure><figcaption>{captions[0]}</figcaption>'
        f"{charts.sse_chart(curve, content.K)}</figure>"
        f"<figure><figcaption>{captions[1]}</figcaption>"
        f"{charts.stability_chart(curve, content.K)}</figure></div>"
    )
    return Section("number", "How many clusters", html)


def trust(content: Content) -> Section:
    """Questions and answers about the result."""
    words = {"good": "Good", "careful": "With care", "poor": "Poor"}
    items = "".join(
        f'<li class="{check.level}"><strong>{text_of(check.question)}</strong> '
        f'<span class="small soft">{words[check.level]}</span>'
        f"<p>{text_of(check.answer)}</p></li>"
        for check in checks(content)
    )
    return Section("trust", "How far to trust it", f'<ul class="checks">{items}</ul>')
