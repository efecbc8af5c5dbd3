"""What each cluster is like, from a sketch alone and with the data."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._analysis.separation import border_gaps
from ckm.errors import MismatchError, ParameterError


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Three clusters of 60, 30 and 10 % of the rows, apart in the first two of three columns."""
    rng = np.random.default_rng(0)
    means = np.array([[0, 0, 0], [9, 0, 0], [0, 12, 0]], float)
    labels = np.repeat([0, 1, 2], [3000, 1500, 500])
    return means[labels] + rng.normal(size=(5000, 3)) * [1, 1.5, 2]


@pytest.fixture(scope="module")
def sketch(rows: np.ndarray) -> ckm.Sketch:
    return ckm.sketch(rows, n_clusters=3, random_state=0)


@pytest.fixture(scope="module")
def solution(sketch: ckm.Sketch) -> ckm.Solution:
    return ckm.decode(sketch, 3, random_state=0)


@pytest.fixture(scope="module")
def found(sketch: ckm.Sketch, solution: ckm.Solution) -> ckm.Profile:
    return ckm.profile(sketch, solution)


def test_a_sketch_knows_shares_deviations_and_gaps(
    rows: np.ndarray, solution: ckm.Solution, found: ckm.Profile
) -> None:
    labels = solution.predict(rows)
    shares = np.bincount(labels) / len(rows)
    low, high = found.share_interval.T
    assert (low <= shares).all()
    assert (shares <= high).all()
    assert (high - low < 0.05).all()
    deviations = [rows[labels == k].std(axis=0) for k in range(3)]
    np.testing.assert_allclose(found.deviations, deviations, rtol=0.1)
    assert (found.gaps > 0.9).all()
    assert found.overall_separation > 0.5


def test_contrasts_are_those_of_the_rows(
    rows: np.ndarray, solution: ckm.Solution, found: ckm.Profile
) -> None:
    labels = solution.predict(rows)
    for k in range(3):
        mine = rows[labels == k].mean(axis=0)
        others = rows[labels != k].mean(axis=0)
        np.testing.assert_allclose(
            found.contrasts[k], (mine - others) / rows.std(axis=0), atol=0.02
        )
    # The smallest cluster is the one that is far along the second column.
    assert found.traits(int(np.argmin(found.shares)))[0][0] == "[1]"


def test_with_the_data_shares_are_exact_and_examples_are_its_rows(
    rows: np.ndarray, sketch: ckm.Sketch, solution: ckm.Solution
) -> None:
    found = ckm.profile(sketch, solution, rows, n_examples=2)
    labels = solution.predict(rows)
    np.testing.assert_allclose(found.shares, np.bincount(labels) / len(rows))
    np.testing.assert_allclose(found.deviations[0], rows[labels == 0].std(axis=0))
    assert found.examples is not None
    assert found.example_rows is not None
    distances = np.linalg.norm(rows[:, None] - solution.centroids, axis=2)
    for k in range(3):
        nearest = np.argsort(np.where(labels == k, distances[:, k], np.inf))[:2]
        np.testing.assert_array_equal(found.example_rows[k], nearest)
        np.testing.assert_array_equal(found.examples[k], rows[nearest])


def test_slices_of_one_cloud_have_no_gaps() -> None:
    cloud = np.random.default_rng(0).normal(size=(4000, 2))
    sketch = ckm.sketch(cloud, n_clusters=4, random_state=0)
    found = ckm.profile(sketch, ckm.decode(sketch, 4, random_state=0))
    assert found.overall_gap < 0.3
    assert "slices of one cloud" in str(found) or "overlapping" in str(found)


def test_gaps_of_points_that_are_two_and_of_one() -> None:
    x = np.linspace(0, 1, 1001)[:, None]
    C = np.array([[0.25], [0.75]])
    ones = np.ones(len(x))
    np.testing.assert_allclose(border_gaps(x, np.abs(x - C.T), ones, C), 0.0, atol=0.05)
    two = np.where(x < 0.5, 0.5 * x, 1 - 0.5 * (1 - x))
    np.testing.assert_array_equal(border_gaps(two, np.abs(two - C.T), ones, C), 1.0)


def test_units_change_nothing(rows: np.ndarray, found: ckm.Profile) -> None:
    """Standardised columns in other units have the same contrasts."""
    a, b = (
        ckm.profile(s, ckm.decode(s, 3, random_state=0), X)
        for X in (rows, rows * [1000.0, 1, 1])
        for s in [ckm.sketch(X, n_clusters=3, standardize=True, random_state=0)]
    )
    np.testing.assert_allclose(a.contrasts, b.contrasts, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(a.deviations * [1000.0, 1, 1], b.deviations, rtol=1e-3)


def test_one_cluster_and_points_without_a_distribution(
    sketch: ckm.Sketch, solution: ckm.Solution
) -> None:
    one = ckm.profile(sketch, ckm.decode(sketch, 1, random_state=0))
    assert one.traits(0) == []
    assert "1 cluster" in str(one)
    # As the decoder of the paper leaves it.
    points = ckm.profile(sketch, dataclasses.replace(solution, distribution=None))
    assert np.isnan(points.deviations).all()
    assert "nan" not in str(points)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_of_every_library(backend: str, solution: ckm.Solution, found: ckm.Profile) -> None:
    frame = solution.to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    np.testing.assert_array_equal(np.asarray(frame["weight"]), solution.weights)
    np.testing.assert_array_equal(np.asarray(frame["[2]"]), solution.centroids[:, 2])
    assert len(found.to_frame(backend)) == 9


def test_misuse_says_what_was_given(sketch: ckm.Sketch, solution: ckm.Solution) -> None:
    with pytest.raises(ParameterError, match=r"There is no backend 'excel'; choose .* 'polars'"):
        solution.to_frame("excel")
    with pytest.raises(ParameterError, match=r"got int. Make one with ckm.decode"):
        ckm.profile(sketch, 3)  # type: ignore[arg-type]
    other = ckm.sketch(np.eye(2), n_clusters=1, random_state=0)
    with pytest.raises(MismatchError, match=r"has the columns \[0\] to \[2\], and the sketch"):
        ckm.profile(other, solution)


def test_columns_that_were_sketched_as_logarithms_are_told_in_their_own_units() -> None:
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1], [3000, 2000])
    amount = np.array([50.0, 5000.0])[kinds] * np.exp(0.3 * rng.normal(size=5000))
    rows = np.stack([amount, np.array([20.0, 50.0])[kinds] + 3 * rng.normal(size=5000)], axis=1)
    table = pd.DataFrame(rows, columns=["amount", "age"])
    sketch = ckm.sketch(table, n_clusters=2, log=["amount"], standardize=True, random_state=0)
    solution = ckm.decode(sketch, 2, random_state=0)
    logarithms = np.log1p(amount)
    for data in (None, table):
        found = ckm.profile(sketch, solution, data)
        gap = logarithms[kinds == 1].mean() - logarithms[kinds == 0].mean()
        assert found.contrasts[1, 0] == pytest.approx(gap / logarithms.std(), rel=0.02)
        deviations = [rows[kinds == k].std(axis=0) for k in range(2)]
        np.testing.assert_allclose(found.deviations, deviations, rtol=0.15)
        assert (found.gaps > 0.9).all()
    assert found.examples is not None
    np.testing.assert_array_equal(found.shares, [0.6, 0.4])
    np.testing.assert_allclose(found.examples[:, 0], solution.centroids, rtol=0.1)
