"""`ckm.report`: everything that a sketch tells about clusters, on one page."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from ckm._analysis.comparing import compare as compare_sketches
from ckm._analysis.every_k import curve as curve_of
from ckm._analysis.every_k import largest_number
from ckm._analysis.k_curve import KCurve
from ckm._analysis.profiling import profile, require_solution
from ckm._core.defaults import DEFAULT_MAX_CLUSTERS
from ckm._core.sketch import Sketch
from ckm._decoding.api import decode
from ckm._decoding.requirements import require_decodable
from ckm._decoding.solution import Solution
from ckm._display.report import sections, sections_data
from ckm._display.report.cluster_map import map_clusters
from ckm._display.report.content import MIN_GAP, NO_GAP, STABLE, Content
from ckm._display.report.page import render_page
from ckm._display.report.svg import text_of
from ckm._util.address import Address, as_path
from ckm._util.files import check_writable, write_atomically
from ckm._util.random import RandomState, seed_of
from ckm._util.text import visible
from ckm.errors import ParameterError


def report(
    sketch: Sketch,
    solution: Solution | None = None,
    path: str | PathLike[str] = "report.html",
    *,
    data: Any = None,
    compare: Sketch | None = None,
    n_clusters: int | None = None,
    max_clusters: int = DEFAULT_MAX_CLUSTERS,
    title: str | None = None,
    random_state: RandomState = 0,
    n_jobs: int | None = None,
) -> Path | Address:
    """Write one page of HTML about the clusters of a sketch, for people to read.

    It says how many clusters there are, how large, what sets each apart and how far to trust them,
    with plots. The page needs nothing from outside, opens from a file, and prints.

    Parameters
    ----------
    sketch : Sketch
        The sketch of the data.
    solution : Solution, optional
        What `ckm.decode` found in it. None decodes it.
    path : str or path-like, default="report.html"
        Where to write the page. A page that is there is replaced.
    data : array, data frame, path or any other data that `ckm.sketch` reads, optional
        The rows: shares are then exact, and the rows nearest to each centroid are shown. It takes
        one pass.
    compare : Sketch, optional
        An earlier sketch with the same frequencies, to tell what changed since.
    n_clusters : int, optional
        The number of clusters, if no solution is given. None takes the number that `ckm.curve`
        suggests; without one, the largest number of stable clusters with gaps between them, else
        the most stable number, or one where that only cuts a cloud.
    max_clusters : int, default=20
        The largest number of clusters that the curve shows; fewer if the sketch is too small.
    title : str, optional
        The heading of the page.
    random_state : None, int, Generator or RandomState, default=0
        The seed of what is decoded.
    n_jobs : int, optional
        The number of threads; None means every core. The result does not depend on it.

    Returns
    -------
    pathlib.Path or Address
        Where the page is.

    Raises
    ------
    ParameterError
        If both `solution` and `n_clusters` are given, or the latter is out of range.
    MismatchError
        If solution, data or earlier sketch do not belong to the sketch.
    DataError
        If the sketch has no rows.
    OutputError
        If the page cannot be written.

    See Also
    --------
    profile : The same clusters as numbers.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=2).rows
    >>> sketch = ckm.sketch(X, n_clusters=8, random_state=0)
    >>> ckm.report(sketch, path="report.html")  # doctest: +SKIP
    PosixPath('report.html')
    """
    target = as_path(fspath(path))
    check_writable(target)
    content = gather(
        sketch,
        solution,
        data=data,
        compare=compare,
        n_clusters=n_clusters,
        max_clusters=max_clusters,
        title=title,
        seed=seed_of(random_state),
        n_jobs=n_jobs,
    )
    write_atomically(target, render(content).encode())
    return target


def gather(
    sketch: Sketch,
    solution: Solution | None,
    *,
    data: Any,
    compare: Sketch | None,
    n_clusters: int | None,
    max_clusters: int,
    title: str | None,
    seed: int,
    n_jobs: int | None,
    word: Callable[[str], str] = str,
) -> Content:
    """Everything that the page shows."""
    require_decodable(sketch, "report")
    if solution is not None:
        require_solution(sketch, solution)
        if n_clusters is not None:
            raise ParameterError(
                "A solution has its own number of clusters; leave out the solution, or the number."
            )
    curve = _curve(sketch, max_clusters, seed, n_jobs)
    is_chosen = solution is None and n_clusters is None
    if solution is None:
        K = _choose(sketch, curve) if n_clusters is None else n_clusters
        solution = decode(sketch, K, random_state=seed, n_jobs=n_jobs)
    K = len(solution.weights)
    comparison = None if compare is None else compare_sketches(compare, sketch, n_clusters=K)
    return Content(
        title=title or f"{K} cluster{'s' * (K > 1)} in {sketch.count:,} rows",
        sketch=sketch,
        solution=solution,
        profile=profile(sketch, solution, data, n_jobs=n_jobs),
        cluster_map=map_clusters(solution, data if isinstance(data, np.ndarray) else None),
        curve=curve,
        comparison=comparison,
        is_chosen=is_chosen,
        data_name=_name_of(data),
        word=word,
    )


def render(content: Content) -> str:
    """The page."""
    parts = [
        sections.clusters(content),
        sections.plane(content),
        sections.profiles(content),
        sections.numbers(content),
        sections.trust(content),
        *sections_data.comparison(content),
        sections_data.columns(content),
        sections_data.making(content),
    ]
    bottom = f"<p>{text_of('Made by ckm: compressive k-means from a sketch of the data.')}</p>"
    return render_page(content.title, sections.top(content), parts, bottom)


def _curve(sketch: Sketch, most: int, seed: int, n_jobs: int | None) -> KCurve | None:
    """The curve, up to what the sketch is large enough for."""
    most = min(most, largest_number(sketch), sketch.count)
    if most < 2:
        return None
    return curve_of(sketch, most, random_state=seed, n_jobs=n_jobs)


def _choose(sketch: Sketch, curve: KCurve | None) -> int:
    """The number that the sketch suggests; else the largest whose clusters all have gaps between
    them and are stable; else the most stable one, unless its clusters are slices of one cloud.
    """
    if curve is None:
        return 1
    if curve.suggestion is not None:
        return curve.suggestion
    stable = curve.n_clusters[curve.stability >= STABLE]
    for K in sorted(map(int, stable), reverse=True):
        gaps = profile(sketch, curve.solutions[K]).gaps
        if K > 1 and np.nanmin(gaps, initial=1.0) >= MIN_GAP:
            return K
    stability = np.where(curve.n_clusters > 1, curve.stability, -np.inf)
    K = int(curve.n_clusters[np.nanargmax(stability)])
    is_cut = profile(sketch, curve.solutions[K]).overall_gap < NO_GAP
    return 1 if is_cut else K


def _name_of(data: Any) -> str | None:
    if data is None:
        return None
    if isinstance(data, str | PathLike):
        return visible(fspath(data))
    if isinstance(data, list) and data and all(isinstance(name, str | PathLike) for name in data):
        more = f" and {len(data) - 1} more" if len(data) > 1 else ""
        return visible(fspath(data[0])) + more
    return f"a {type(data).__name__} in memory"
