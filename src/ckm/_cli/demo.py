"""`ckm demo`: the paper's Gaussian mixture, clustered from a sketch and by k-means in the same run,
with a table and a picture.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Table
from scipy.optimize import linear_sum_assignment

import ckm
from ckm._cli.errors import say
from ckm._display.tables import console, readable_bytes, working
from ckm._kmeans.assign import assign, distances
from ckm._util.arrays import Array
from ckm._util.files import atomic_file, check_writable
from ckm._util.parallel import thread_count
from ckm.datasets import Mixture, gaussian_mixture
from ckm.errors import OutputError

CLUSTERS, DIMENSION = 10, 10
_KMEANS_STARTS = 5
# a cluster counts as found when a centroid of its own lies within one standard deviation of its
# mean
_FOUND = 1.0

_T = TypeVar("_T")


@dataclass(frozen=True)
class Contender:
    """One way to cluster, with what it took and what it found."""

    # seconds to have the data at hand: one pass that sketches it, or loading it into memory
    reading: float
    solving: float  # seconds to find centroids from that
    kept: int  # bytes that the centroids are found from
    centroids: Array
    sse: float
    errors: Array  # distance from each true mean to the centroid matched with it

    @property
    def seconds(self) -> float:
        """Everything, from the file on disk to centroids."""
        return self.reading + self.solving

    @property
    def found(self) -> int:
        """How many true clusters have a centroid of their own."""
        return int((self.errors < _FOUND).sum())


def run_demo(folder: Path, rows: int, seed: int) -> None:
    """Make the data in `folder`, cluster it both ways, and show the comparison."""
    data, sketch_file, picture = (
        folder / "mixture.parquet",
        folder / "mixture.ckm",
        folder / "demo.png",
    )
    _prepare(folder, data, sketch_file, picture)
    with working("Making data", quiet=False):
        mixture = gaussian_mixture(rows, CLUSTERS, DIMENSION, dtype=np.float32, random_state=seed)
        _write(data, mixture.rows)
    say(
        f"Made {rows:,} rows of {CLUSTERS} unit Gaussians in dimension {DIMENSION}: {data} ({readable_bytes(data.stat().st_size)})"
    )
    with working("Compiling", quiet=False):
        _, compiling = _timed(
            lambda: ckm.decode(
                ckm.sketch(mixture.rows[:1000], n_clusters=2, random_state=seed),
                2,
                random_state=seed,
            )
        )
    say(
        f"Loaded and compiled the kernels in {compiling:.1f} s, which is not counted below (they are cached on disk)"
    )
    ours, s = _run_ckm(data, mixture, seed)
    s.save(sketch_file)
    theirs = _run_kmeans(data, mixture, seed)
    output = console()
    output.print(_comparison(ours, theirs))
    output.print(_summary(ours, theirs), _draw(picture, mixture, s, ours, theirs), sep="\n")
    print(
        f"\nTry next:\n  ckm fit {data} -k {CLUSTERS}\n  ckm inspect {sketch_file}\n  ckm decode {sketch_file} -k {CLUSTERS} --n-init 3"
    )


def _prepare(folder: Path, *files: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"Cannot make the folder {folder}: {error.strerror or error}; choose another with --folder."
        ) from None
    for file in files:
        check_writable(file)


def _write(path: Path, rows: Array) -> None:
    table = pa.table({f"x{i}": rows[:, i] for i in range(rows.shape[1])})
    # Uncompressed: noise does not compress.
    with atomic_file(path) as file:
        pq.write_table(table, file, row_group_size=2**16, compression="none", use_dictionary=False)


def _timed(work: Callable[[], _T]) -> tuple[_T, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def _run_ckm(data: Path, mixture: Mixture, seed: int) -> tuple[Contender, "ckm.Sketch"]:
    s, reading = _timed(
        lambda: ckm.sketch(data, n_clusters=CLUSTERS, random_state=seed, progress=True)
    )
    with working("Decoding the sketch", quiet=False):
        solution, solving = _timed(lambda: ckm.decode(s, CLUSTERS, random_state=seed))
    return Contender(
        reading, solving, s.nbytes, solution.centroids, *_judge(mixture, solution.centroids)
    ), s


def _run_kmeans(data: Path, mixture: Mixture, seed: int) -> Contender:
    from sklearn.cluster import KMeans

    with working(f"Running k-means from {_KMEANS_STARTS} starts", quiet=False):
        X, reading = _timed(lambda: _read(data))
        model, solving = _timed(
            lambda: KMeans(CLUSTERS, n_init=_KMEANS_STARTS, random_state=seed % 2**32).fit(X)
        )
    return Contender(
        reading, solving, X.nbytes, model.cluster_centers_, *_judge(mixture, model.cluster_centers_)
    )


def _read(path: Path) -> Array:
    table = pq.read_table(path)
    return np.column_stack([column.to_numpy() for column in table.columns])


def _judge(mixture: Mixture, centroids: Array) -> tuple[float, Array]:
    """The SSE over all rows, and the distance of each true mean to the centroid matched with it."""
    _, sse = assign(mixture.rows, centroids, n_threads=thread_count(None))
    apart = distances(mixture.means, centroids)
    return sse, apart[linear_sum_assignment(apart)]


def _comparison(ours: Contender, theirs: Contender) -> Table:
    table = Table(
        title="From the Parquet file to centroids", title_justify="left", title_style="bold"
    )
    for heading in (
        "",
        "ckm\nsketch, then decode",
        f"k-means\nscikit-learn, best of {_KMEANS_STARTS} runs",
    ):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row(
        "reading the file",
        f"{ours.reading:.2f} s, sketching it",
        f"{theirs.reading:.2f} s, loading it",
    )
    table.add_row(
        "finding centroids",
        f"{ours.solving:.2f} s",
        f"{theirs.solving:.2f} s, {_KMEANS_STARTS} runs",
    )
    table.add_row(
        "total time",
        f"{ours.seconds:.2f} s",
        f"{theirs.seconds:.2f} s",
        style="bold",
        end_section=True,
    )
    table.add_row(
        "bytes kept",
        f"{readable_bytes(ours.kept)}, the sketch",
        f"{readable_bytes(theirs.kept)}, every row",
    )
    table.columns[0].no_wrap = True
    table.add_section()
    table.add_row("SSE", f"{ours.sse:.4g}", f"{theirs.sse:.4g}")
    table.add_row("SSE / k-means' SSE", f"{ours.sse / theirs.sse:.3f}", "1", style="bold")
    table.add_row("clusters found", *(f"{c.found} of {CLUSTERS}" for c in (ours, theirs)))
    table.add_row("distance to true means", *(f"{c.errors.mean():.3f}" for c in (ours, theirs)))
    table.caption = (
        "Found: a centroid of its own within one standard deviation of its mean.\n"
        "Distance: the average over clusters, in standard deviations of a cluster."
    )
    table.caption_justify = "left"
    return table


def _summary(ours: Contender, theirs: Contender) -> str:
    ratio, faster = ours.sse / theirs.sse, theirs.seconds / ours.seconds
    speed = (
        f"{faster:.1f} times as fast as" if faster >= 1 else f"{1 / faster:.1f} times as long as"
    )
    gap = abs(ratio - 1)
    quality = "the same as" if gap < 5e-4 else f"{gap:.1%} {'above' if ratio > 1 else 'below'}"
    return (
        f"In this run ckm took {ours.seconds:.1f} s, {speed} k-means ({theirs.seconds:.1f} s for {_KMEANS_STARTS} runs), and kept "
        f"{readable_bytes(ours.kept)} instead of {readable_bytes(theirs.kept)}. "
        f"Its SSE is {quality} that of k-means; it found {ours.found} of the {CLUSTERS} clusters, k-means {theirs.found}."
    )


def _draw(
    picture: Path, mixture: Mixture, s: "ckm.Sketch", ours: Contender, theirs: Contender
) -> str:
    """The picture, or the sentence that says how to get it."""
    try:
        from ckm._display.plots import draw_clusters
    except ImportError:
        return "For a picture of the result, install matplotlib: pip install 'compressive-kmeans[plot]'"
    title = f"{s.count:,} rows in {DIMENSION} dimensions, {CLUSTERS} clusters, {readable_bytes(ours.kept)} of sketch"
    subtitle = f"Seen along two principal axes. SSE of ckm: {ours.sse / theirs.sse:.3f} times that of k-means."
    points = {"true means": mixture.means, "k-means": theirs.centroids, "ckm": ours.centroids}
    draw_clusters(picture, title, subtitle, mixture.rows, s, points)
    return f"The picture is in {picture}"
