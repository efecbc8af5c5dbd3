"""A mixture has scikit-learn's shapes, densities and criteria; EM makes its steps."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from ckm._analysis.components import (
    COVARIANCE_TYPES,
    WITH_MATRICES,
    Components,
    count_parameters,
    recommended_size,
)
from ckm._analysis.expectation import Shape, fit_points, maximise, sum_points
from ckm.errors import DataError

K, N_FEATURES = 3, 4


def components_of(covariance_type: str, seed: int = 0) -> Components:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(K))
    means = 3 * rng.standard_normal((K, N_FEATURES))
    if covariance_type in WITH_MATRICES:
        roots = rng.standard_normal((K, N_FEATURES, N_FEATURES))
        covariances = roots @ roots.transpose(0, 2, 1) + np.eye(N_FEATURES)
    else:
        covariances = rng.uniform(0.5, 2, (K, N_FEATURES))
    shape = Shape(covariance_type, np.zeros(N_FEATURES))
    return Components(weights, means, shape.constrain(covariances, weights))


def peer_of(components: Components, covariance_type: str) -> GaussianMixture:
    """scikit-learn's model with these parameters, whose next step of EM starts from them."""
    return GaussianMixture(
        K,
        covariance_type=covariance_type,
        max_iter=1,
        weights_init=components.weights,
        means_init=components.means,
        precisions_init=components.precisions_in_shape_of(covariance_type),
    )


def rows_near(components: Components, count: int = 500) -> np.ndarray:
    rng = np.random.default_rng(1)
    return components.draw(rng, rng.multinomial(count, components.weights))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
def test_one_step_of_em_is_scikit_learns(covariance_type: str) -> None:
    start = components_of(covariance_type)
    X = rows_near(start) + 0.3
    peer = peer_of(start, covariance_type).fit(X)
    shape = Shape(covariance_type, np.full(N_FEATURES, 1e-6))
    found = maximise(start, sum_points(start, X, np.ones(len(X))), shape)
    np.testing.assert_allclose(found.weights, peer.weights_, rtol=1e-9)
    np.testing.assert_allclose(found.means, peer.means_, rtol=1e-9)
    covariances = found.in_shape_of(covariance_type)
    assert covariances.shape == peer.covariances_.shape
    np.testing.assert_allclose(covariances, peer.covariances_, rtol=1e-7)
    precisions = found.precisions_in_shape_of(covariance_type)
    np.testing.assert_allclose(precisions, peer.precisions_, rtol=1e-6)
    np.testing.assert_allclose(found.log_density(X), peer.score_samples(X), rtol=1e-9)
    np.testing.assert_allclose(found.shares(X), peer.predict_proba(X), atol=1e-9)
    assert count_parameters(covariance_type, K, N_FEATURES) == peer._n_parameters()


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_weights_equal_repetition(covariance_type: str) -> None:
    start = components_of(covariance_type)
    X = rows_near(start, 50)
    beta = np.arange(1, 51) % 3 + 1.0
    weighted = sum_points(start, X, beta)
    repeated = sum_points(start, np.repeat(X, beta.astype(int), axis=0), np.ones(int(beta.sum())))
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_gaussian_parts_count_as_many_points(covariance_type: str) -> None:
    """A part of a measure with a width has the sums of points spread that wide, where all of them
    belong to one component.
    """
    start = Components(
        np.ones(1),
        np.zeros((1, 2)),
        np.array([np.diag([2.0, 2.0])]) if covariance_type in WITH_MATRICES else [[2.0, 2.0]],
    )
    centre = np.array([[1.0, -1.0]])
    variances = np.array([[0.5, 0.2]])
    part = sum_points(start, centre, np.ones(1), variances)
    # Four points with this mean and these variances.
    step = np.sqrt(2 * variances[0])
    points = centre + np.array([[step[0], 0], [-step[0], 0], [0, step[1]], [0, -step[1]]])
    spread = sum_points(start, points, np.full(4, 0.25))
    for a, b in zip(part, spread, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_no_step_of_em_lowers_the_likelihood() -> None:
    components = components_of("full", 3)
    X = rows_near(components_of("full"))
    shape = Shape("full", np.full(N_FEATURES, 1e-9))
    found = []
    for _ in range(20):
        sums = sum_points(components, X, np.ones(len(X)))
        found.append(sums.log_likelihood)
        components = maximise(components, sums, shape)
    assert (np.diff(found) > -1e-6).all()
    assert found[-1] > found[0]


def test_a_component_without_rows_stays_where_it_is() -> None:
    start = Components([0.5, 0.5], [[0.0], [1e6]], [[1.0], [1.0]])
    X = np.random.default_rng(0).standard_normal((100, 1))
    shape = Shape("diag", np.full(1, 1e-6))
    found = fit_points(start, X, np.ones(100), None, shape, max_steps=5, tolerance=0.0)
    assert found.components.means[1, 0] == 1e6
    assert np.isfinite(found.components.covariances).all()
    assert found.components.weights[1] < 1e-9


def test_a_singular_covariance_says_what_to_do() -> None:
    flat = Components([1.0], [[0.0, 0.0]], [[[1.0, 1.0], [1.0, 1.0]]])
    with pytest.raises(DataError, match="reg_covar"):
        flat.log_density(np.zeros((1, 2)))


def test_draws_have_the_moments_of_the_mixture() -> None:
    mixture = components_of("full")
    X = mixture.draw(np.random.default_rng(0), np.array([40_000, 0, 0]))
    assert np.abs(X.mean(axis=0) - mixture.means[0]).max() < 0.1
    relative = np.cov(X.T) - mixture.covariances[0]
    assert np.abs(relative).max() < 0.05 * np.abs(mixture.covariances[0]).max()


def test_the_recommended_size_is_five_for_each_number() -> None:
    assert recommended_size("diag", 10, 10) == 1000
    assert recommended_size("spherical", 10, 10) == 550
    assert recommended_size("full", 10, 10) == 5 * 10 * 65
    assert recommended_size("tied", 10, 10) == 5 * (100 + 55)
