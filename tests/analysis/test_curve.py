"""A curve over the number of clusters: its SSE is that of k-means, its suggestion is honest."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.cluster import KMeans

import ckm
from ckm.errors import DataError, ParameterError

MAX = 8
GAUSSIANS = 4


@cache
def _clusters() -> np.ndarray:
    return ckm.datasets.gaussian_mixture(6000, GAUSSIANS, 3, separation=15, random_state=3).rows


def _cloud() -> np.ndarray:
    return np.random.default_rng(0).uniform(size=(6000, 3))


@cache
def _sketch(cells: int) -> ckm.Sketch:
    return ckm.sketch(_clusters(), n_clusters=MAX, cells=cells, random_state=0)


@cache
def _curve(cells: int = 128) -> ckm.KCurve:
    return ckm.curve(_sketch(cells), MAX, random_state=0)


@pytest.mark.parametrize("cells", [0, 128])
def test_the_sse_is_that_of_k_means_for_every_number(cells: int) -> None:
    X = _clusters()
    curve = _curve(cells)
    for K in (2, 4, 6, 8):
        best = KMeans(K, n_init=3, random_state=0).fit(X).inertia_
        assert curve.sse[K - 1] == pytest.approx(best, rel=0.04)
        assert -curve.solutions[K].score(X) == pytest.approx(best, rel=0.04)
        low, high = curve.sse_interval[K - 1]
        assert low <= curve.sse[K - 1] <= high


def test_the_sse_of_one_cluster_is_exact_and_more_clusters_have_less() -> None:
    X = _clusters()
    curve = _curve()
    assert curve.sse[0] == pytest.approx(((X - X.mean(axis=0)) ** 2).sum(), rel=1e-4)
    assert (np.diff(curve.sse) <= 0).all()


@pytest.mark.parametrize("cells", [0, 128])
def test_separate_gaussians_are_counted(cells: int) -> None:
    curve = _curve(cells)
    assert curve.suggestion == GAUSSIANS
    assert curve.evidence.argmin() == GAUSSIANS - 1
    assert curve.evidence.min() == 0
    assert curve.residual[GAUSSIANS - 1] < 1.5
    assert curve.residual[GAUSSIANS - 2] > 10
    assert curve.stability[GAUSSIANS - 1] > 0.95 > curve.stability[GAUSSIANS:].max()
    assert str(GAUSSIANS) in curve.reason


def test_one_gaussian_is_one_cluster() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((5000, 4)) @ rng.standard_normal((4, 4))
    curve = ckm.curve(ckm.sketch(X, n_clusters=MAX, random_state=0), MAX, random_state=0)
    assert curve.suggestion == 1


def test_uniform_rows_have_no_clear_number() -> None:
    curve = ckm.curve(ckm.sketch(_cloud(), n_clusters=MAX, random_state=0), MAX, random_state=0)
    assert curve.suggestion is None
    assert "No clear number" in curve.reason
    assert "No clear number" in str(curve)


def test_clusters_of_another_shape_are_counted() -> None:
    rng = np.random.default_rng(4)
    centres = 7.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]])
    angles = rng.uniform(0, 2 * np.pi, size=6000)
    disc = np.sqrt(rng.uniform(size=6000))[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    X = centres[rng.integers(5, size=6000)] + 2 * disc
    curve = ckm.curve(ckm.sketch(X, n_clusters=MAX, random_state=0), MAX, random_state=0)
    assert curve.suggestion == 5


def test_the_same_seed_gives_the_same_curve_for_any_number_of_threads() -> None:
    s = _sketch(0)
    again = ckm.curve(s, MAX, random_state=0, n_jobs=2)
    assert np.array_equal(again.sse, _curve(0).sse)
    assert np.array_equal(again.evidence, _curve(0).evidence)
    assert np.array_equal(again.solutions[5].centroids, _curve(0).solutions[5].centroids)


def test_a_merged_sketch_has_the_curve_of_the_whole() -> None:
    X = _clusters()
    s = _sketch(128)
    parts = ckm.merge([ckm.sketch(part, like=s) for part in np.array_split(X, 3)])
    whole = ckm.sketch(X, like=s)
    a = ckm.curve(parts, MAX, random_state=0)
    b = ckm.curve(whole, MAX, random_state=0)
    assert np.allclose(a.sse, b.sse)
    assert a.suggestion == b.suggestion


def test_weights_that_repeat_rows_change_nothing_but_the_chance() -> None:
    X = _clusters()
    s = _sketch(128)
    weighted = ckm.sketch(X, like=s, sample_weight=np.full(len(X), 2.0))
    curve = ckm.curve(weighted, MAX, random_state=0)
    assert curve.suggestion == GAUSSIANS
    assert curve.sse == pytest.approx(2 * _curve().sse, rel=0.01)


def test_a_decayed_sketch_is_counted_too() -> None:
    curve = ckm.curve(_sketch(128).scaled(0.25), MAX, random_state=0)
    assert curve.suggestion == GAUSSIANS
    assert curve.sse == pytest.approx(0.25 * _curve().sse, rel=0.01)


def test_wide_rows_are_counted_in_their_projection() -> None:
    rng = np.random.default_rng(0)
    centres = 3 * rng.standard_normal((3, 200))
    X = centres[rng.integers(3, size=3000)] + rng.standard_normal((3000, 200))
    sketch = ckm.sketch(X, n_clusters=6, projection=8, random_state=0)
    curve = ckm.curve(sketch, 6, random_state=0)
    assert curve.suggestion == 3
    assert -curve.solutions[3].score(X) == pytest.approx(curve.sse[2], rel=0.05)


def test_standardised_columns_have_their_sse_in_units() -> None:
    X = _clusters() * [1, 100, 1e-3]
    sketch = ckm.sketch(X, n_clusters=MAX, standardize=True, random_state=0)
    curve = ckm.curve(sketch, MAX, random_state=0)
    assert -curve.solutions[4].score(X) == pytest.approx(curve.sse[3], rel=0.04)


def test_few_rows_have_at_most_as_many_clusters() -> None:
    X = np.arange(12.0).reshape(6, 2)
    curve = ckm.curve(ckm.sketch(X, n_clusters=3, random_state=0), 20, random_state=0)
    assert list(curve.n_clusters) == [1, 2, 3, 4, 5, 6]
    assert curve.sse[-1] == pytest.approx(0, abs=1e-6)


def test_equal_rows_are_one_cluster() -> None:
    X = np.ones((50, 3))
    curve = ckm.curve(ckm.sketch(X, n_clusters=3, scale=1.0, random_state=0), 3, random_state=0)
    assert curve.suggestion == 1
    assert "equal" in curve.reason


def test_few_frequencies_say_nothing_about_the_number() -> None:
    sketch = ckm.sketch(_clusters(), n_clusters=4, sketch_size=20, cells=64, random_state=0)
    curve = ckm.curve(sketch, 4, random_state=0)
    assert curve.suggestion is None
    assert "20 frequencies" in curve.reason
    assert np.isnan(curve.evidence).all()
    assert curve.sse[3] > 0


def test_bad_arguments_are_refused_with_a_sentence() -> None:
    with pytest.raises(ParameterError, match="curve takes a Sketch"):
        ckm.curve(_clusters())  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="max_clusters"):
        ckm.curve(_sketch(0), 0)
    with pytest.raises(ParameterError, match="max_clusters=100; ask for at most 60"):
        ckm.curve(_sketch(0), 100)
    with pytest.raises(DataError, match="zero rows"):
        ckm.curve(_sketch(0) - _sketch(0))


def test_a_curve_is_a_table_and_html_and_survives_a_pickle() -> None:
    curve = _curve()
    text = str(curve)
    assert text.startswith(f"Suggested number of clusters: {GAUSSIANS}")
    assert curve.reason in text
    assert len(text.splitlines()) > MAX
    html = curve._repr_html_()
    assert html.count("<tr>") == MAX + 1
    assert "\n" not in repr(curve)
    again = pickle.loads(pickle.dumps(curve))
    assert np.array_equal(again.sse, curve.sse)
    assert np.array_equal(again.solutions[3].centroids, curve.solutions[3].centroids)


def test_solutions_are_those_of_the_numbers_on_the_curve() -> None:
    solutions = _curve().solutions
    assert list(solutions) == list(range(1, MAX + 1))
    assert [len(solutions[K].weights) for K in solutions] == list(range(1, MAX + 1))
    assert len(solutions) == MAX
    with pytest.raises(KeyError):
        solutions[MAX + 1]


def test_a_curve_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        _curve().sse[0] = 1.0


def test_a_plot_is_drawn_and_saved(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pytest.importorskip("matplotlib")
    path = tmp_path / "curve.png"
    figure = _curve().plot(path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(figure.axes) == 3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_curve_of_a_sketch_that_cannot_see_outliers_says_so(seed: int) -> None:
    """And finds those that bounds and second moments leave no doubt about."""
    far = np.array([[900.0, 0, 0], [0, -700.0, 0]])
    rows = np.vstack([_clusters(), far])
    sketch = ckm.sketch(rows, n_clusters=MAX, cells=0, random_state=seed)
    curve = ckm.curve(sketch, MAX, random_state=seed)
    assert curve.status == "far-out"
    assert "outliers" in str(curve)
    assert _curve(0).status == _curve().status == "ok"
    for K in (6, 7, 8):
        best = KMeans(K, n_init=5, random_state=0).fit(rows).inertia_
        assert -curve.solutions[K].score(rows) == pytest.approx(best, rel=0.04)
        low, high = curve.sse_interval[K - 1]
        assert low <= best <= high
