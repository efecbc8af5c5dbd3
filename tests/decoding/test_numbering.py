"""Clusters keep their numbers: by weight, or as those of an earlier solution."""

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._decoding.numbering import heaviest_first, numbered_as

MEANS = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])


def day(seed: int, shares: np.ndarray | None = None) -> np.ndarray:
    """Rows of one day: the clusters move and change their shares a little."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 50.0)) if shares is None else shares
    means = MEANS + rng.normal(scale=0.3, size=MEANS.shape)
    return means[rng.choice(4, 4000, p=p)] + rng.normal(size=(4000, 2))


@pytest.fixture(scope="module")
def first() -> ckm.Sketch:
    return ckm.sketch(day(0), n_clusters=4, random_state=0)


@pytest.fixture(scope="module")
def yesterday(first: ckm.Sketch) -> ckm.Solution:
    return ckm.decode(first, 4, random_state=0)


def same_clusters(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether each centroid of `a` is near the one of the same number in `b`."""
    return bool(np.linalg.norm(a - b, axis=1).max() < 3.0)


@pytest.mark.parametrize("decoder", ["density", "clompr"])
def test_the_heaviest_cluster_is_the_first(first: ckm.Sketch, decoder: str) -> None:
    found = ckm.decode(first, 4, decoder=decoder, random_state=0)
    assert (np.diff(found.weights) <= 0).all()
    assert (np.diff(found.raw_weights) <= 0).all()


def test_clusters_of_equal_weight_are_ordered_by_their_coordinates() -> None:
    centroids = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 1.0], [9.0, 9.0]])
    order = heaviest_first(centroids, np.array([0.2, 0.2, 0.2, 0.4]))
    np.testing.assert_array_equal(order, [3, 1, 2, 0])


def test_a_week_of_days_keeps_its_numbers(first: ckm.Sketch, yesterday: ckm.Solution) -> None:
    last = yesterday
    for seed in range(1, 8):
        sketch = ckm.sketch(day(seed), like=first)
        found = ckm.decode(sketch, 4, match=last, random_state=0)
        assert same_clusters(found.centroids, yesterday.centroids)
        # The numbers are all that differs from a decoding of its own.
        own = ckm.decode(sketch, 4, random_state=0)
        assert sorted(map(tuple, found.centroids)) == sorted(map(tuple, own.centroids))
        last = found


@pytest.mark.parametrize("decoder", ["density", "clompr"])
@pytest.mark.parametrize("as_array", [True, False])
def test_given_centroids_are_the_start_and_the_numbers(
    first: ckm.Sketch, yesterday: ckm.Solution, decoder: str, as_array: bool
) -> None:
    order = np.array([2, 0, 3, 1])
    given = yesterday.centroids[order] if as_array else yesterday
    found = ckm.decode(first, 4, decoder=decoder, init=given, random_state=1)
    expected = given if as_array else yesterday.centroids
    assert same_clusters(found.centroids, expected)
    model = ckm.CompressiveKMeans(4, init=given, decoder=decoder, random_state=0).fit(day(1))
    assert same_clusters(model.cluster_centers_, expected)


def test_a_bad_start_is_left_where_a_search_is_better(first: ckm.Sketch) -> None:
    start = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [0.1, 0.1]])
    found = ckm.decode(first, 4, init=start, random_state=0)
    free = ckm.decode(first, 4, random_state=0)
    assert found.score(day(0)) >= 1.001 * free.score(day(0))


def test_other_numbers_of_clusters_are_matched_too() -> None:
    earlier = np.array([[0.0], [10.0], [20.0]])
    more = np.array([[20.1], [0.1], [9.9], [15.0], [30.0]])
    weights = np.array([0.1, 0.1, 0.1, 0.3, 0.4])
    np.testing.assert_array_equal(numbered_as(earlier, more, weights, None), [1, 2, 0, 4, 3])
    fewer = np.array([[19.0], [1.0]])
    np.testing.assert_array_equal(numbered_as(earlier, fewer, np.ones(2), None), [1, 0])


def test_distances_are_in_the_units_of_the_solution() -> None:
    earlier = np.array([[0.0, 0.0], [3.0, 100.0]])
    centroids = np.array([[3.0, 0.0], [0.0, 100.0]])
    weights = np.full(2, 0.5)
    np.testing.assert_array_equal(numbered_as(earlier, centroids, weights, None), [0, 1])
    units = np.array([1.0, 1000.0])
    np.testing.assert_array_equal(numbered_as(earlier, centroids, weights, units), [1, 0])


def test_columns_are_found_by_name() -> None:
    pandas = pytest.importorskip("pandas")
    X = day(0)
    frame = pandas.DataFrame({"a": X[:, 0], "b": 10 * X[:, 1]})
    sketch = ckm.sketch(frame, n_clusters=4, random_state=0)
    found = ckm.decode(sketch, 4, random_state=0)
    other = ckm.sketch(frame[["b", "a"]], n_clusters=4, random_state=0)
    again = ckm.decode(other, 4, match=found, random_state=0)
    assert np.abs(again.centroids[:, ::-1] - found.centroids).max() < 3.0
    renamed = ckm.sketch(frame.rename(columns={"b": "c"}), n_clusters=4, random_state=0)
    with pytest.raises(ckm.errors.MismatchError, match=r"match have the columns a, b where"):
        ckm.decode(renamed, 4, match=found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"init": np.zeros((3, 2))}, r"shape of the initial centers \(3, 2\) does not match the"),
        ({"init": np.zeros((4, 3))}, r"number of features of the data 2; init takes an array"),
        ({"match": np.zeros((4, 3))}, r"shape of the centroids to match \(4, 3\) does not match"),
        ({"match": [[np.nan, 0.0]]}, "match must be finite numbers"),
        ({"init": None}, "no init None; choose one of .*, or give centroids"),
        ({"init": [1.0, 2.0]}, "init must be finite numbers, an array .* or a Solution; got"),
        ({"init": "farthest"}, "no init 'farthest'; choose one of 'auto'"),
        ({"n_init": "many"}, "n_init must be a whole number, at least 1; got 'many'"),
    ],
)
def test_what_cannot_be_a_start_is_refused(
    first: ckm.Sketch, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ckm.errors.ParameterError, match=message):
        ckm.decode(first, 4, **arguments)  # type: ignore[arg-type]


def test_given_centroids_are_those_of_the_data_whatever_is_done_to_columns() -> None:
    clusters = ckm.datasets.gaussian_mixture(3000, 3, 2, separation=20, random_state=1)
    X = np.stack([np.exp(clusters.rows[:, 0]), 1000 * clusters.rows[:, 1]], axis=1)
    table = pd.DataFrame(X, columns=["amount", "other"])
    sketch = ckm.sketch(table, n_clusters=3, log=["amount"], standardize=True, random_state=0)
    found = ckm.decode(sketch, 3, random_state=0).centroids
    other_order = found[[2, 0, 1]]
    for given in ({"init": other_order}, {"match": other_order}):
        again = ckm.decode(sketch, 3, random_state=1, **given).centroids
        np.testing.assert_allclose(again, other_order, rtol=0.05)
