"""`ckm demo`: the paper's Gaussian mixture, clustered from a sketch and by k-means in the same run,
with a table and a plot.
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
from ckm._cli.files import Output, check_files
from ckm._cli.streams import say
from ckm._display.tables import console, readable_bytes, show_stages
from ckm._kmeans.assign import Centroids
from ckm._sources.arrays import ArraySource
from ckm._util.arrays import FloatArray, RowsArray
from ckm._util.files import atomic_file
from ckm.datasets import Mixture, gaussian_mixture
from ckm.errors import OutputError

# The setting of the paper's experiments.
CLUSTERS = 10
DIMENSION = 10
_KMEANS_STARTS = 5
# A cluster counts as found when a centroid of its own lies this close to its mean, in standard
# deviations of the cluster.
_FOUND_DISTANCE = 1.0

_T = TypeVar("_T")


@dataclass(frozen=True)
class Contender:
    """One way to cluster, with its cost and its result.

    Parameters
    ----------
    reading : float
        Seconds to read the file: one pass that sketches it, or loading it into memory.
    solving : float
        Seconds to find the centroids from what was read.
    n_bytes : int
        Bytes that the centroids are found from.
    centroids : array (K, n)
    sse : float
    errors : array (K,)
        Distance from each true mean to the centroid matched with it.
    """

    reading: float
    solving: float
    n_bytes: int
    centroids: FloatArray
    sse: float
    errors: FloatArray

    @property
    def seconds(self) -> float:
        """Total time, from the file on disk to centroids."""
        return self.reading + self.solving

    @property
    def n_found(self) -> int:
        """Number of true clusters that have a centroid of their own."""
        return int((self.errors < _FOUND_DISTANCE).sum())


def run_demo(folder: Path, rows: int, seed: int) -> None:
    """Generate data in `folder`, cluster it both ways, and show the comparison."""
    data = folder / "mixture.parquet"
    sketch_file = folder / "mixture.ckm"
    picture = folder / "demo.png"
    _prepare(folder, data, sketch_file, picture)
    with show_stages("Generating data", quiet=False):
        mixture = gaussian_mixture(rows, CLUSTERS, DIMENSION, dtype=np.float32, random_state=seed)
        _write(data, mixture.rows)
    size = readable_bytes(data.stat().st_size)
    say(
        f"Generated {rows:,} rows of {CLUSTERS} unit Gaussians in dimension {DIMENSION}: "
        f"{data} ({size})"
    )
    with show_stages("Compiling", quiet=False):
        _, compiling = _timed(lambda: _compile(mixture.rows[:1000], seed))
    say(
        f"Loaded and compiled the kernels in {compiling:.1f} s, which is not counted below (they "
        "are cached on disk)"
    )
    ours, s = _run_ckm(data, mixture, seed)
    s.save(sketch_file)
    theirs = _run_kmeans(data, mixture, seed)
    output = console()
    output.print(_comparison(ours, theirs))
    output.print(_summary(ours, theirs), _draw(picture, mixture, s, ours, theirs), sep="\n")
    print("\nTry next:")
    print(f"  ckm fit {data} -k {CLUSTERS}")
    print(f"  ckm inspect {sketch_file}")
    print(f"  ckm decode {sketch_file} -k {CLUSTERS} --n-init 3")


def _prepare(folder: Path, *files: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"Cannot make the folder {folder}: {error.strerror or error}; choose another with "
            "--folder."
        ) from None
    check_files([], [Output(file, (file.suffix,), "--folder") for file in files])


def _compile(rows: RowsArray, seed: int) -> None:
    """Run everything once, so that no compilation is counted later."""
    sketch = ckm.sketch(rows, n_clusters=2, random_state=seed)
    ckm.decode(sketch, 2, random_state=seed)


def _write(path: Path, rows: RowsArray) -> None:
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
    with show_stages("Decoding the sketch", quiet=False):
        solution, solving = _timed(lambda: ckm.decode(s, CLUSTERS, random_state=seed))
    centroids = solution.centroids
    return Contender(reading, solving, s.nbytes, centroids, *_evaluate(mixture, centroids)), s


def _run_kmeans(data: Path, mixture: Mixture, seed: int) -> Contender:
    from sklearn.cluster import KMeans

    with show_stages(f"Running k-means from {_KMEANS_STARTS} starts", quiet=False):
        X, reading = _timed(lambda: _read(data))
        model, solving = _timed(
            lambda: KMeans(CLUSTERS, n_init=_KMEANS_STARTS, random_state=seed % 2**32).fit(X)
        )
    centroids = model.cluster_centers_
    return Contender(reading, solving, X.nbytes, centroids, *_evaluate(mixture, centroids))


def _read(path: Path) -> RowsArray:
    table = pq.read_table(path)
    return np.column_stack([column.to_numpy() for column in table.columns])


def _evaluate(mixture: Mixture, centroids: FloatArray) -> tuple[float, FloatArray]:
    """Return the SSE of all rows and the distance from each true mean to its matched centroid."""
    found = Centroids(centroids)
    sse = found.sse(ArraySource(mixture.rows))
    apart = found.distances(ArraySource(mixture.means))
    return sse, apart[linear_sum_assignment(apart)]


def _comparison(ours: Contender, theirs: Contender) -> Table:
    table = Table(
        title="From the Parquet file to centroids", title_justify="left", title_style="bold"
    )
    table.add_column("", no_wrap=True)
    table.add_column("ckm\nsketch, then decode", justify="right")
    table.add_column(f"k-means\nscikit-learn, best of {_KMEANS_STARTS} runs", justify="right")
    reading = (f"{ours.reading:.2f} s, sketching it", f"{theirs.reading:.2f} s, loading it")
    table.add_row("reading the file", *reading)
    solving = (f"{ours.solving:.2f} s", f"{theirs.solving:.2f} s, {_KMEANS_STARTS} runs")
    table.add_row("finding centroids", *solving)
    both = (ours, theirs)
    table.add_row("total time", *(f"{c.seconds:.2f} s" for c in both), style="bold")
    table.add_section()
    our_size = f"{readable_bytes(ours.n_bytes)}, the sketch"
    their_size = f"{readable_bytes(theirs.n_bytes)}, every row"
    table.add_row("bytes kept", our_size, their_size)
    table.add_section()
    table.add_row("SSE", *(f"{c.sse:.4g}" for c in both))
    table.add_row("SSE / k-means' SSE", f"{ours.sse / theirs.sse:.3f}", "1", style="bold")
    table.add_row("clusters found", *(f"{c.n_found} of {CLUSTERS}" for c in both))
    table.add_row("distance to true means", *(f"{c.errors.mean():.3f}" for c in both))
    table.caption = (
        "Found: a centroid of its own within one standard deviation of its mean.\n"
        "Distance: the average over clusters, in standard deviations of a cluster."
    )
    table.caption_justify = "left"
    return table


def _summary(ours: Contender, theirs: Contender) -> str:
    speedup = theirs.seconds / ours.seconds
    if speedup >= 1:
        speed = f"{speedup:.1f} times as fast as"
    else:
        speed = f"{1 / speedup:.1f} times as long as"
    ratio = ours.sse / theirs.sse
    gap = abs(ratio - 1)
    quality = "the same as" if gap < 5e-4 else f"{gap:.1%} {'above' if ratio > 1 else 'below'}"
    return (
        f"In this run ckm took {ours.seconds:.1f} s, {speed} k-means ({theirs.seconds:.1f} s for "
        f"{_KMEANS_STARTS} runs), and kept {readable_bytes(ours.n_bytes)} instead of "
        f"{readable_bytes(theirs.n_bytes)}. Its SSE is {quality} that of k-means; it found "
        f"{ours.n_found} of the {CLUSTERS} clusters, k-means {theirs.n_found}."
    )


def _draw(
    picture: Path, mixture: Mixture, s: "ckm.Sketch", ours: Contender, theirs: Contender
) -> str:
    """Draw the plot; return a sentence that says where it is, or how to get it."""
    try:
        from ckm._display.plots import draw_clusters
    except ImportError:
        return (
            "For a plot of the result, install matplotlib: pip install 'compressive-kmeans[plot]'"
        )
    title = (
        f"{s.count:,} rows in {DIMENSION} dimensions, {CLUSTERS} clusters, "
        f"{readable_bytes(ours.n_bytes)} of sketch"
    )
    ratio = ours.sse / theirs.sse
    subtitle = f"Seen along two principal axes. SSE of ckm: {ratio:.3f} times that of k-means."
    points = {"true means": mixture.means, "k-means": theirs.centroids, "ckm": ours.centroids}
    draw_clusters(picture, title, subtitle, mixture.rows, s, points)
    return f"The plot is in {picture}"
