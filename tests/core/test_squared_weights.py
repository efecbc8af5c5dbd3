"""Sketches keep the sum of squared weights, from which the variance of their means is known."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sketch_files import forge, metadata_of

import ckm
from ckm._core.storage import deserialise, serialise
from ckm._core.tally import Tally
from ckm._kernels import load_kernel
from ckm._sketching.checkpoint import from_bytes
from ckm.errors import SketchFileError

LIKE = ckm.sketch(np.eye(2), sketch_size=6, scale=1.0, random_state=0)
GOLDEN = Path(__file__).parent / "golden"


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 2))


def weighted(weights: np.ndarray, seed: int = 0) -> ckm.Sketch:
    return ckm.sketch(rows(len(weights), seed), like=LIKE, sample_weight=weights)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=50))
def test_the_effective_size_is_that_of_the_weights(weights: list[float]) -> None:
    beta = np.array(weights)
    s = weighted(beta)
    assert s.effective_size == pytest.approx(beta.sum() ** 2 / (beta**2).sum())
    assert 1 - 1e-9 <= s.effective_size <= s.count + 1e-9


def test_unweighted_rows_count_as_one_each_whatever_made_their_sums() -> None:
    assert ckm.sketch(rows(30), like=LIKE).effective_size == 30
    assert load_kernel("numpy").tally(LIKE.frequencies, rows(30)).effective_size == 30
    assert ckm.Sketch.empty(LIKE.frequencies).effective_size == 0


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("distribution", ["gaussian", "structured"])
@pytest.mark.parametrize("kernel", ["cpu", "numpy"])
def test_every_kernel_adds_them_up(kernel: str, distribution: str, n: int) -> None:
    frequencies = ckm.draw_frequencies(8, n, distribution=distribution, seed=0)
    beta = np.random.default_rng(1).uniform(0.1, 3, size=100)
    X = np.random.default_rng(2).normal(size=(100, n))
    found = load_kernel(kernel).tally(frequencies, X, beta)
    assert found.squared_weight == pytest.approx((beta**2).sum())


def test_they_are_added_subtracted_and_scaled_with_their_rows() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 9, size=(2, 40)).astype(float)
    both = weighted(a) + weighted(b, seed=1)
    assert both.tally.squared_weight == (a**2).sum() + (b**2).sum()
    assert (both - weighted(b, seed=1)).tally.squared_weight == (a**2).sum()
    assert both.scaled(0.5).tally.squared_weight == both.tally.squared_weight / 4
    assert both.scaled(0.5).effective_size == both.effective_size
    unweighted = ckm.sketch(rows(10, 2), like=LIKE)
    assert (both + unweighted).tally.squared_weight == both.tally.squared_weight + 10
    assert (unweighted.scaled(0.5) + unweighted).tally.squared_weight == 12.5


def test_streams_sparse_and_wide_rows_and_workers_keep_them() -> None:
    rng = np.random.default_rng(4)
    beta = rng.uniform(0.5, 2, size=300)
    growing = ckm.Sketcher(like=LIKE)
    growing.update(rows(100), sample_weight=beta[:100])
    growing.update(rows(200, 1), sample_weight=beta[100:])
    wide = ckm.sketch(rng.normal(size=(300, 70)), n_clusters=2, sample_weight=beta, random_state=0)
    assert wide.frequencies.projection is not None
    X = sparse.random(300, 70, density=0.1, random_state=np.random.default_rng(5), format="csr")
    of_sparse = ckm.sketch(X, like=wide, sample_weight=beta)
    for s in (growing.result(), wide, of_sparse, pickle.loads(pickle.dumps(wide))):
        assert s.tally.squared_weight == pytest.approx((beta**2).sum())


def test_checkpoints_keep_them(tmp_path: Path) -> None:
    table = pd.DataFrame(rows(60), columns=["a", "b"]).assign(w=np.repeat([1.0, 2.0, 2.5], 20))
    table.to_csv(tmp_path / "rows.csv", index=False)
    options = {"like": LIKE, "weight_column": "w", "checkpoint": tmp_path / "part"}
    first = ckm.sketch(tmp_path / "rows.csv", **options)
    saved = from_bytes((tmp_path / "part").read_bytes())
    resumed = ckm.sketch(tmp_path / "rows.csv", resume=True, **options)
    for s in (first, saved.sketch, resumed):
        assert s.tally.squared_weight == 20 * (1 + 4 + 6.25)


def test_what_rounding_leaves_is_not_taken_for_squares() -> None:
    large = weighted(np.array([1e9, 1e9]))
    small = weighted(np.array([1e-3]), seed=1)
    assert ((large + small) - large).effective_size is None


def test_squares_that_are_too_small_for_numbers_are_not_known() -> None:
    s = weighted(np.array([1e-100, 1e-100])).scaled(1e-80)
    assert s.weight > 0
    assert s.effective_size is None


def test_they_are_saved_and_loaded() -> None:
    s = weighted(np.array([1.0, 2.5, 3.25]))
    found = deserialise(serialise(s))
    assert found == s
    assert found.tally.squared_weight == s.tally.squared_weight
    assert metadata_of(serialise(s))["version"] == 4
    half = ckm.sketch(rows(10), like=LIKE).scaled(0.5)
    assert deserialise(serialise(half)).effective_size == 10


def test_files_of_unweighted_rows_stay_as_they_were() -> None:
    s = ckm.sketch(rows(10), like=LIKE)
    assert metadata_of(serialise(s))["version"] < 4
    assert deserialise(serialise(s)).effective_size == 10


def test_files_of_weighted_rows_without_them_load() -> None:
    s = weighted(np.array([1.0, 2.5, 3.25]))
    version = 2 if s.cells is None else 3
    old = serialise(s, version)
    found = deserialise(old)
    assert found == s
    assert found.effective_size is None
    assert (found + s).effective_size is None
    assert serialise(found) == old


@pytest.mark.parametrize("name", ["v1", "v2", "v2-structured", "v3", "v4"])
def test_golden_files_have_the_size_of_their_count(name: str) -> None:
    s = ckm.load(GOLDEN / f"{name}.ckm")
    assert s.effective_size == (s.count if s.exact else None)


@pytest.mark.parametrize("squares", [0.0, -1.0, 1e300, 0.5, 10, None, "1"])
def test_forged_squares_are_refused(squares: object) -> None:
    data = serialise(weighted(np.array([1.0, 2.5, 3.25])))
    with pytest.raises(SketchFileError):
        deserialise(forge(data, metadata={"squared_weight": squares}))


def test_sums_without_rows_have_none() -> None:
    assert Tally.empty(3, 2).squared_weight == 0
