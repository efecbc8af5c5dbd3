"""A mixture from a sketch alone: near the likelihood of a fit to the rows, in the data's units."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

import ckm
from ckm._analysis import mixture_fit
from ckm._analysis.components import COVARIANCE_TYPES, recommended_size
from ckm.errors import DataError, MismatchError, NonFiniteError, ParameterError, SmallSketchWarning

MEANS = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 1.0], [0.0, 7.0, -1.0]])
ROOTS = np.array(
    [
        [[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 2.0]],
        [[1.0, 0.8, 0.0], [0.0, 0.7, 0.0], [0.0, 0.3, 1.0]],
        [[0.6, 0.0, 0.4], [0.0, 1.2, 0.0], [0.0, 0.0, 0.8]],
    ]
)
WEIGHTS = (0.5, 0.3, 0.2)


def rows(count: int, seed: int = 0, *, is_diagonal: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, count, p=WEIGHTS)
    roots = ROOTS * np.eye(3) if is_diagonal else ROOTS
    noise = np.einsum("li,lid->ld", rng.standard_normal((count, 3)), roots[labels])
    return np.asarray(MEANS[labels] + noise)


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return rows(20_000)


@pytest.fixture(scope="module")
def sketch(X: np.ndarray) -> ckm.Sketch:
    size = recommended_size("full", 3, 3)
    return ckm.sketch(X, n_clusters=3, sketch_size=size, random_state=0)


@pytest.fixture(scope="module")
def mixture(sketch: ckm.Sketch) -> ckm.GaussianMixtureSolution:
    return ckm.fit_mixture(sketch, 3, "full", random_state=0)


@pytest.mark.parametrize("cells", [0, 48])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_it_has_nearly_the_likelihood_of_a_fit_to_the_rows(
    cells: int, covariance_type: str
) -> None:
    is_diagonal = covariance_type == "diag"
    X = rows(20_000, is_diagonal=is_diagonal)
    unseen = rows(20_000, 1, is_diagonal=is_diagonal)
    size = recommended_size(covariance_type, 3, 3)
    s = ckm.sketch(X, n_clusters=3, sketch_size=size, cells=cells, random_state=0)
    found = ckm.fit_mixture(s, 3, covariance_type, random_state=0)
    best = GaussianMixture(3, covariance_type=covariance_type, n_init=2, random_state=0).fit(X)
    assert found.is_matched
    assert found.status == "ok"
    assert found.score(unseen) > best.score(unseen) - 0.01


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_shapes_are_scikit_learns(sketch: ckm.Sketch, X: np.ndarray, covariance_type: str) -> None:
    found = ckm.fit_mixture(sketch, 3, covariance_type, random_state=0)
    peer = GaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X[:2000])
    assert found.covariances.shape == peer.covariances_.shape
    assert found.precisions.shape == peer.precisions_.shape
    assert found.means.shape == peer.means_.shape
    assert found.weights.sum() == pytest.approx(1)
    assert found.predict_proba(X[:7]).shape == (7, 3)
    assert found.n_parameters == peer._n_parameters()
    total = found.score_samples(X[:500]).sum()
    assert found.score(X[:500]) == pytest.approx(total / 500)
    assert found.bic(X[:500]) == pytest.approx(-2 * total + found.n_parameters * np.log(500))
    assert found.aic(X[:500]) == pytest.approx(-2 * total + 2 * found.n_parameters)


def test_parameters_are_those_of_the_data(mixture: ckm.GaussianMixtureSolution) -> None:
    # The heaviest comes first, as in the data.
    np.testing.assert_allclose(mixture.weights, WEIGHTS, atol=0.02)
    np.testing.assert_allclose(mixture.means, MEANS, atol=0.1)
    expected = ROOTS.transpose(0, 2, 1) @ ROOTS
    np.testing.assert_allclose(mixture.covariances, expected, atol=0.25)
    eye = mixture.covariances @ mixture.precisions
    np.testing.assert_allclose(eye, np.broadcast_to(np.eye(3), eye.shape), atol=1e-9)


@pytest.mark.parametrize("standardize", [False, True])
def test_covariances_are_in_the_units_of_the_data(standardize: bool) -> None:
    X = rows(20_000, is_diagonal=True)
    units = np.array([1000.0, 1.0, 0.001]) if standardize else np.full(3, 1000.0)
    s = ckm.sketch(
        X * units + 5 * units,
        n_clusters=3,
        sketch_size=90,
        standardize=standardize,
        random_state=0,
    )
    found = ckm.fit_mixture(s, 3, random_state=0, reg_covar=0.0)
    np.testing.assert_allclose(found.means / units - 5, MEANS, atol=0.15)
    expected = (ROOTS.diagonal(axis1=1, axis2=2)) ** 2
    np.testing.assert_allclose(found.covariances / units**2, expected, rtol=0.1, atol=0.05)
    # Densities are per unit of volume in the data's columns.
    own = found.score(X * units + 5 * units) + np.log(units).sum()
    plain = ckm.sketch(X, n_clusters=3, sketch_size=90, random_state=0)
    assert own == pytest.approx(ckm.fit_mixture(plain, 3, random_state=0).score(X), abs=0.01)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_one_gaussian_has_exactly_the_moments(
    sketch: ckm.Sketch, X: np.ndarray, covariance_type: str
) -> None:
    found = ckm.fit_mixture(sketch, 1, covariance_type, reg_covar=0.0)
    peer = GaussianMixture(1, covariance_type=covariance_type, reg_covar=0.0).fit(X)
    np.testing.assert_allclose(found.means, peer.means_, atol=1e-3)
    np.testing.assert_allclose(found.covariances, peer.covariances_, rtol=1e-3, atol=1e-3)
    assert found.score(X) == pytest.approx(peer.score(X), abs=1e-4)


def test_merged_sketches_give_the_same_mixture(X: np.ndarray, sketch: ckm.Sketch) -> None:
    parts = [ckm.sketch(part, like=sketch) for part in np.array_split(X, 3)]
    merged = ckm.fit_mixture(ckm.merge(parts), 3, "full", random_state=0)
    whole = ckm.fit_mixture(sketch, 3, "full", random_state=0)
    np.testing.assert_array_equal(merged.means, whole.means)
    np.testing.assert_array_equal(merged.covariances, whole.covariances)


def test_threads_and_seeds_repeat(sketch: ckm.Sketch, mixture: ckm.GaussianMixtureSolution) -> None:
    again = ckm.fit_mixture(sketch, 3, "full", random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.covariances, mixture.covariances)


def test_all_rows_in_the_pool_are_fitted_exactly() -> None:
    X = rows(500)
    s = ckm.sketch(X, n_clusters=3, sketch_size=135, pool=500, random_state=0)
    found = ckm.fit_mixture(s, 3, "full", random_state=0)
    best = GaussianMixture(3, n_init=3, tol=1e-6, max_iter=500, random_state=0).fit(X)
    assert found.score(X) == pytest.approx(best.score(X), abs=1e-3)


def test_what_is_no_mixture_says_so(X: np.ndarray) -> None:
    uniform = np.random.default_rng(0).uniform(size=(50_000, 2))
    s = ckm.sketch(uniform, n_clusters=3, sketch_size=60, random_state=0)
    found = ckm.fit_mixture(s, 3, random_state=0)
    assert not found.is_matched
    assert found.status == "unexplained"
    assert "polish" in found.message
    # It still has nearly the likelihood that three Gaussians can have.
    best = GaussianMixture(3, covariance_type="diag", n_init=3, random_state=0).fit(uniform)
    assert found.score(uniform) > best.score(uniform) - 0.1


def test_the_number_of_components_can_be_that_of_the_curve(X: np.ndarray) -> None:
    s = ckm.sketch(X, n_clusters=6, sketch_size=270, random_state=0)
    found = ckm.fit_mixture(s, "auto", "full", max_components=6, random_state=0)
    assert len(found.weights) == ckm.curve(s, 6, random_state=0).suggestion


def test_without_a_clear_number_auto_is_an_error(
    sketch: ckm.Sketch, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ckm.curve(sketch, 4, random_state=0)
    unclear = replace(found, suggestion=None, reason="Nothing is clear.")
    monkeypatch.setattr(mixture_fit, "curve", lambda *args, **options: unclear)
    with pytest.raises(DataError, match=r"Nothing is clear\. Give n_components="):
        ckm.fit_mixture(sketch, "auto")


def test_draws_come_from_the_mixture(mixture: ckm.GaussianMixtureSolution) -> None:
    drawn, labels = mixture.sample(30_000, random_state=0)
    assert drawn.shape == (30_000, 3)
    assert (np.diff(labels) >= 0).all()
    np.testing.assert_allclose(np.bincount(labels) / 30_000, mixture.weights, atol=0.01)
    for k in range(3):
        np.testing.assert_allclose(drawn[labels == k].mean(axis=0), mixture.means[k], atol=0.1)
    again, _ = mixture.sample(30_000, random_state=0)
    np.testing.assert_array_equal(again, drawn)


def test_densities_of_files_and_arrays_agree(
    mixture: ckm.GaussianMixtureSolution, X: np.ndarray, tmp_path
) -> None:
    np.save(tmp_path / "rows.npy", X[:40_000])
    path = tmp_path / "rows.npy"
    np.testing.assert_array_equal(mixture.predict(path), mixture.predict(X))
    np.testing.assert_array_equal(
        mixture.score_samples(path, n_jobs=2), mixture.score_samples(X, n_jobs=1)
    )
    np.testing.assert_allclose(mixture.predict_proba(X).sum(axis=1), 1.0)


def test_it_prints_as_a_table_and_as_html(mixture: ckm.GaussianMixtureSolution) -> None:
    text = str(mixture)
    assert "3 Gaussians with full covariances" in text
    assert len([line for line in text.splitlines() if "±" in line]) == 4
    assert mixture._repr_html_().count("<tr>") == 4
    assert "\n" not in repr(mixture)


def test_it_is_frozen_and_pickles(mixture: ckm.GaussianMixtureSolution) -> None:
    with pytest.raises(AttributeError):
        mixture.covariance_type = "diag"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        mixture.means[0] = 0
    again = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(again.means, mixture.means)
    with pytest.raises(ValueError, match="read-only"):
        again.components.means[0] = 0


def test_other_columns_are_refused(mixture: ckm.GaussianMixtureSolution, X: np.ndarray) -> None:
    with pytest.raises(MismatchError, match="2 columns where this mixture has 3"):
        mixture.predict(X[:, :2])
    bad = X[:10].copy()
    bad[3, 1] = np.nan
    with pytest.raises(NonFiniteError):
        mixture.score(bad)


def test_a_sketch_that_is_too_small_is_an_error_or_a_warning(X: np.ndarray) -> None:
    tiny = ckm.sketch(X, sketch_size=12, cells=0, random_state=0)
    with pytest.raises(ParameterError, match=r"29 unknowns.*sketch_size=135"):
        ckm.fit_mixture(tiny, 3, "full")
    few = ckm.sketch(X, sketch_size=50, cells=0, random_state=0)
    with pytest.warns(SmallSketchWarning, match="sketch_size=135"):
        found = ckm.fit_mixture(few, 3, "full", random_state=0)
    assert found.status == "small-sketch"


def test_what_cannot_be_a_mixture_is_refused(X: np.ndarray, sketch: ckm.Sketch) -> None:
    with pytest.raises(ParameterError, match="takes a Sketch; got ndarray"):
        ckm.fit_mixture(X, 3)
    projected = ckm.sketch(X, n_clusters=3, projection=2, random_state=0)
    with pytest.raises(ParameterError, match="projection=None"):
        ckm.fit_mixture(projected, 3)
    cosine = ckm.sketch(X, n_clusters=3, metric="cosine", random_state=0)
    with pytest.raises(ParameterError, match="metric='euclidean'"):
        ckm.fit_mixture(cosine, 3)
    with pytest.raises(ParameterError, match="covariance_type"):
        ckm.fit_mixture(sketch, 3, "round")
    with pytest.raises(ParameterError, match="reg_covar"):
        ckm.fit_mixture(sketch, 3, reg_covar=-1.0)
    with pytest.raises(ParameterError, match="n_components"):
        ckm.fit_mixture(sketch, 0)
    with pytest.raises(ParameterError, match="n_components"):
        ckm.fit_mixture(sketch, "many")
    with pytest.raises(DataError, match="too few for n_components=30000"):
        ckm.fit_mixture(sketch, 30_000)
    with pytest.raises(DataError, match="zero rows"):
        ckm.fit_mixture(ckm.Sketch.empty(sketch.frequencies), 3)


def test_weighted_rows_count_as_their_repetitions() -> None:
    X = rows(4000)
    weights = np.arange(4000) % 3 + 1.0
    weighted = ckm.sketch(X, n_clusters=3, sketch_size=90, sample_weight=weights, random_state=0)
    repeated = ckm.sketch(np.repeat(X, weights.astype(int), axis=0), like=weighted)
    a = ckm.fit_mixture(weighted, 3, random_state=0)
    b = ckm.fit_mixture(repeated, 3, random_state=0)
    np.testing.assert_allclose(a.means, b.means, atol=0.02)
    np.testing.assert_allclose(a.weights, b.weights, atol=0.01)


def test_a_large_regularisation_is_no_trouble(sketch: ckm.Sketch, X: np.ndarray) -> None:
    """Components that are wider than any frequency sees: their covariance is what was added."""
    found = ckm.fit_mixture(sketch, 3, "full", reg_covar=1e8, random_state=0)
    np.testing.assert_allclose(
        found.covariances, 1e8 * np.eye(3)[None].repeat(3, 0), rtol=1e-3, atol=1e5
    )
    assert np.isfinite(found.score(X))


def test_rows_that_are_no_mixture_have_nearly_the_likelihood_of_a_fit_to_all() -> None:
    X = np.exp(np.random.default_rng(0).standard_normal((30_000, 4)) * [0.3, 0.5, 0.8, 1.0])
    train, test = X[:20_000], X[20_000:]
    best = GaussianMixture(6, covariance_type="diag", n_init=5, random_state=0).fit(train)
    with pytest.warns(ckm.errors.ClustersWarning):
        model = ckm.CompressiveGaussianMixture(6, random_state=0).fit(train)
    assert model.score(test) > best.score(test) - 0.1
