"""What a user writes, as a type checker sees it: `make lint` runs `mypy --strict` on this file, and
`tests/project/test_release.py` runs it.
"""

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import ckm
from ckm import CompressiveKMeans, Sketch, Sketcher, Solution, errors


def cluster(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centroids by the estimator."""
    model = CompressiveKMeans(3, standardize=True, random_state=0).fit(rows)
    assert_type(model, CompressiveKMeans)
    assert_type(model.score(rows), float)
    assert_type(model.sketch_, Sketch)
    return np.asarray(model.cluster_centers_)


def in_parts(first: NDArray[np.float64], second: NDArray[np.float64], folder: Path) -> Solution:
    """Sketch, merge, save, load, decode."""
    monday = ckm.sketch(first, n_clusters=3, random_state=0)
    tuesday = ckm.sketch(second, like=monday)
    assert_type(monday + tuesday, Sketch)
    both = ckm.merge([monday, tuesday])
    both.save(folder / "both.ckm")
    assert_type(ckm.load(folder / "both.ckm"), Sketch)
    found = ckm.decode(both, 3, random_state=0)
    assert_type(found, Solution)
    assert_type(found.weights, NDArray[np.float64])
    return found


def in_batches(batches: list[NDArray[np.float64]]) -> Sketch:
    """A sketch that grows."""
    sketcher = Sketcher(n_clusters=4, random_state=0)
    for batch in batches:
        sketcher.update(batch)
    return sketcher.result()


def analysed(sketch: Sketch, other: Sketch) -> tuple[int | None, float]:
    """What else a sketch answers."""
    curve = ckm.curve(sketch, max_clusters=4, random_state=0)
    assert_type(curve, ckm.KCurve)
    found = ckm.compare(sketch, other)
    assert_type(found, ckm.Comparison)
    return curve.suggestion, found.p_value


def refused() -> str:
    """Errors have one base class, and are those of Python too."""
    try:
        ckm.load("none.ckm")
    except errors.MissingFileError as error:
        base: errors.CkmError = error
        also: FileNotFoundError = error
        return f"{base}{also}"
    return ""
