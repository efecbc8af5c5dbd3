"""The covariance of features of a mixture, against rows drawn from it."""

import numpy as np
import pytest

from ckm._analysis.feature_covariance import (
    FeatureCovariance,
    mixture_covariance,
    round_variances,
    some_frequencies,
)
from ckm._analysis.quadratic_form import QuadraticForm


def mixture(rng, Q=3, n=2):
    shares = rng.dirichlet(np.ones(Q))
    return shares, rng.normal(size=(Q, n)) * 2, rng.uniform(0.1, 0.6, size=(Q, n))


def features(omega, rows):
    waves = np.exp(-1j * rows @ omega.T)
    return np.hstack([waves.real, waves.imag])


def test_it_is_the_covariance_of_the_features_of_rows():
    rng = np.random.default_rng(0)
    shares, means, variances = mixture(rng)
    omega = rng.normal(size=(7, 2))
    which = rng.choice(3, p=shares, size=200_000)
    rows = means[which] + np.sqrt(variances[which]) * rng.standard_normal((len(which), 2))
    expected = np.cov(features(omega, rows).T)
    found = mixture_covariance(omega, 5 * shares, means, variances).matrix
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_of_point_masses_it_is_that_of_the_points():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5, 3))
    omega = rng.normal(size=(6, 3))
    found = mixture_covariance(omega, np.ones(5), points, np.zeros(5)).matrix
    np.testing.assert_allclose(found, np.cov(features(omega, points).T, bias=True), atol=1e-12)


def test_one_variance_for_all_axes_is_the_same_variance_for_each():
    rng = np.random.default_rng(2)
    shares, means, _ = mixture(rng)
    omega = rng.normal(size=(6, 2))
    one = mixture_covariance(omega, shares, means, np.full(3, 0.3)).matrix
    each = mixture_covariance(omega, shares, means, np.full((3, 2), 0.3)).matrix
    np.testing.assert_allclose(one, each, atol=1e-14)


def test_weights_multiply_the_squares_of_features():
    rng = np.random.default_rng(3)
    omega = rng.normal(size=(6, 2))
    weights = rng.uniform(size=6)
    plain = mixture_covariance(omega, *mixture(np.random.default_rng(4))).matrix
    weighted = mixture_covariance(omega, *mixture(np.random.default_rng(4)), weights).matrix
    factors = np.tile(np.sqrt(weights), 2)
    np.testing.assert_allclose(weighted, factors[:, None] * plain * factors, atol=1e-14)


def test_wide_components_and_high_frequencies_neither_overflow_nor_correlate():
    omega = 1e3 * np.random.default_rng(5).normal(size=(5, 4))
    found = mixture_covariance(omega, np.ones(2), np.zeros((2, 4)), np.ones((2, 4))).matrix
    np.testing.assert_allclose(found, np.eye(10) / 2, atol=1e-12)


def test_traces_are_sums_of_powers_of_eigenvalues():
    rng = np.random.default_rng(6)
    covariance = mixture_covariance(rng.normal(size=(20, 2)), *mixture(rng))
    powers = [(covariance.eigenvalues**k).sum() for k in (1, 2, 3)]
    np.testing.assert_allclose(covariance.traces, powers, rtol=1e-9)


def test_some_frequencies_stand_for_all_without_bias():
    rng = np.random.default_rng(7)
    omega = rng.normal(size=(40, 2))
    parts = mixture(rng)
    exact = mixture_covariance(omega, *parts).traces
    S = mixture_covariance(omega, *parts).matrix
    found = []
    for _ in range(3000):
        chosen = rng.choice(40, size=12, replace=False)
        both = np.concatenate([chosen, 40 + chosen])
        found.append(FeatureCovariance(S[np.ix_(both, both)], 40).traces)
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - exact) < 4 * error).all()


def test_the_frequencies_that_stand_for_all_are_always_the_same():
    assert some_frequencies(100).tolist() == list(range(100))
    chosen = some_frequencies(5000)
    assert len(chosen) == 384
    assert (np.diff(chosen) > 0).all()
    assert (chosen == some_frequencies(5000)).all()


def test_rounding_variances_keeps_their_mean_and_makes_few():
    rng = np.random.default_rng(8)
    variances = np.append(rng.lognormal(size=500), [0.0, 0.0])
    shares = rng.dirichlet(np.ones(502))
    rounded = round_variances(shares, variances)
    assert len(np.unique(rounded)) < 40
    assert shares @ rounded == pytest.approx(shares @ variances)
    assert (rounded[-2:] == 0).all()
    ratio = rounded[:-2] / variances[:-2]
    assert ratio.max() < 1.3
    assert ratio.min() > 1 / 1.3


@pytest.mark.parametrize(("level", "error"), [(0.05, 0.06), (0.01, 0.06), (0.001, 0.3)])
def test_the_law_of_a_quadratic_form_is_that_of_draws(level, error):
    rng = np.random.default_rng(9)
    eigenvalues = 0.7 ** np.arange(12)
    law = QuadraticForm.of_eigenvalues(eigenvalues)
    draws = (eigenvalues * rng.standard_normal((400_000, 12)) ** 2).sum(axis=1)
    assert (draws > law.quantile(level)).mean() == pytest.approx(level, rel=error)
    assert law.tail(law.quantile(level)) == pytest.approx(level)


def test_nothing_that_varies_is_certain():
    law = QuadraticForm.of_eigenvalues(np.zeros(3))
    assert law.tail(0.0) == 1
    assert law.tail(1e-3) == 0
    assert law.quantile(0.05) == 0
