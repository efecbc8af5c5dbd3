"""The pilot: where the origin comes from, and which rows count as outliers."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ckm
from ckm._sketching.pilot import read_pilot_rows
from ckm._sources.arrays import ArraySource


def test_the_origin_is_the_mean_of_the_pilot() -> None:
    rng = np.random.default_rng(3)
    n = int(rng.integers(1, 8))
    X = rng.normal(size=(600, n)) + 4.0 * rng.integers(0, 3, size=(600, 1)) + 1e6
    f = ckm.sketch(X, sketch_size=2, random_state=0).frequencies
    np.testing.assert_allclose(f.origin, X.mean(axis=0), rtol=1e-15)


def test_the_pilot_is_drawn_by_weight() -> None:
    """Six rows that weigh nearly everything decide the origin, however many others there are."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60_000, 2)), 1e4 + rng.normal(size=(6, 2))])
    weights = np.r_[np.full(60_000, 1e-9), np.ones(6)]
    for seed in range(3):
        s = ckm.sketch(X, sketch_size=4, scale=1.0, sample_weight=weights, random_state=seed)
        assert s.mean == pytest.approx(1e4, rel=1e-3)
        assert 0 < s.frequencies.origin[0] <= 1.001e4


def chosen(X: np.ndarray, law: str, **options: Any) -> ckm.Frequencies:
    return ckm.sketch(X, n_clusters=4, random_state=0, distribution=law, **options).frequencies


both_laws = pytest.mark.parametrize("law", ["multiscale", "adapted-radius"])


@both_laws
@pytest.mark.parametrize("value", [1e6, -1e12, 1e30])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.filterwarnings("ignore::ckm.errors.PhaseWarning")
def test_a_few_huge_values_do_not_change_the_scale(law: str, value: float, count: int) -> None:
    X = ckm.datasets.gaussian_mixture(2000, 4, 3, separation=6, random_state=0).rows
    spoilt = X.copy()
    spoilt[:count, 1] = value * np.arange(1, count + 1)
    good = chosen(X, law)
    found = chosen(spoilt, law)
    assert found.scale == pytest.approx(good.scale, rel=0.5)
    assert np.abs(found.origin - good.origin).max() < 100 * X.std()
    assert ckm.sketch(spoilt, like=found).count == 2000  # the sketch includes them


@both_laws
def test_heavy_tails_and_rare_values_are_kept(law: str) -> None:
    """Heavy tails and values that differ now and then are data."""
    rng = np.random.default_rng(0)
    for X in (
        rng.standard_cauchy(size=(3000, 2)),
        np.exp(3 * rng.normal(size=(3000, 2))),
        np.where(rng.random((3000, 2)) < 0.005, 1e6, 0.0),
        np.where(rng.random((3000, 2)) < 0.3, 1e6, rng.normal(size=(3000, 2))),
        np.c_[
            np.where(np.arange(3000) < 15, 1e9, rng.normal(size=3000)),
            np.where(np.arange(3000) < 20, 1e9 * rng.normal(size=3000), 0.0),
        ],
    ):
        f = chosen(X[:, :2], law)
        assert f.scale > 0
    rare = np.zeros((3000, 1))
    rare[:10] = 7.0
    np.testing.assert_allclose(chosen(rare, law).origin, rare.mean(axis=0))


@both_laws
def test_constant_and_repeated_columns(law: str) -> None:
    X = ckm.datasets.gaussian_mixture(2000, 4, 3, separation=6, random_state=0).rows
    good = chosen(X, law).scale
    constant = chosen(np.c_[X, np.full((2000, 2), 1e6)], law)
    # The paper's rule is rougher, and depends on every column.
    factor = 2 if law == "multiscale" else 8
    assert good / factor < constant.scale < 2 * good
    assert constant.origin[3] == 1e6
    repeated = chosen(np.c_[X, X, X], law).scale
    assert good / factor < repeated < factor * good
    assert ckm.sketch(
        np.repeat(X, 3, axis=0), n_clusters=4, random_state=0, distribution=law
    ).frequencies.scale == pytest.approx(good, rel=0.3)


def test_a_pilot_that_chooses_anchors_keeps_outliers_first() -> None:
    """Ten outliers with most of the variance, of which an even sample would hold two or three."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 3))
    X[::6000] += 1000
    pilot = read_pilot_rows(ArraySource(X), rng, 16_384).pilot(rng)
    assert (pilot.rows.min(axis=1) > 900).sum() == 10
    # The others are drawn evenly, three quarters of the size.
    assert abs(len(pilot) - 0.75 * 16_384) < 300
    # The rows stand for all of them.
    np.testing.assert_allclose(pilot.weights.sum(), len(X), rtol=0.03)
    np.testing.assert_allclose(pilot.origin, X.mean(axis=0), atol=0.05)


def test_outliers_are_looked_for_in_the_columns_that_are_kept() -> None:
    """Ids have nearly all the variance, but are left out: they do not decide which rows are far."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60_000, 2))
    rows[::6000] += 1000
    table = {"id": np.arange(60_000) + 1_000_000, "a": rows[:, 0], "b": rows[:, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ckm.errors.ColumnsWarning)
        s = ckm.sketch(pa.table(table), n_clusters=10, random_state=0)
    assert s.columns == ("a", "b")
    anchors = s.cells.anchors.values + s.frequencies.origin
    assert (anchors.min(axis=1) > 900).any()


@pytest.mark.parametrize("standardize", [False, True])
def test_standardized_pilots_keep_outliers_of_any_column(standardize: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 2))
    X[:, 1] *= 1e6
    X[::6000, 0] += 1000
    read = read_pilot_rows(ArraySource(X), rng, 16_384)
    pilot = read.pilot(rng, standardize=standardize)
    assert ((pilot.rows[:, 0] > 900).sum() == 10) == standardize
