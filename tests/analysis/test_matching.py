"""A mixture matched to a sketch: exact derivatives, and the truth where the sketch is exact."""

import numpy as np
import pytest

from ckm._analysis import matching
from ckm._analysis.components import COVARIANCE_TYPES, WITH_MATRICES, Components
from ckm._analysis.expectation import Shape
from ckm._analysis.matching import Match, Target, match, refine
from ckm._analysis.regrouping import regroup

K, N_FEATURES = 4, 3


def truth_of(covariance_type: str, spread: float = 2.0) -> Components:
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.full(K, 5.0))
    means = spread * rng.standard_normal((K, N_FEATURES))
    if covariance_type in WITH_MATRICES:
        roots = 0.4 * rng.standard_normal((K, N_FEATURES, N_FEATURES))
        covariances = roots @ roots.transpose(0, 2, 1) + 0.5 * np.eye(N_FEATURES)
    else:
        covariances = rng.uniform(0.5, 1.5, (K, N_FEATURES))
    return Components(weights, means, shape_of(covariance_type).constrain(covariances, weights))


def shape_of(covariance_type: str) -> Shape:
    return Shape(covariance_type, np.full(N_FEATURES, 1e-6))


def target_of(truth: Components, m: int = 300) -> Target:
    omega = 0.8 * np.random.default_rng(1).standard_normal((m, N_FEATURES))
    box = np.full(N_FEATURES, 20.0)
    empty = Target(omega, np.zeros(m, complex), 1e4, -box, box)
    z = empty.atoms(truth) @ truth.weights
    return Target(omega, z, 1e4, -box, box)


def start_near(truth: Components) -> Components:
    rng = np.random.default_rng(2)
    means = truth.means + 0.3 * rng.standard_normal(truth.means.shape)
    weights = truth.weights + 0.1
    return Components(weights / weights.sum(), means, 1.5 * truth.covariances)


def test_atoms_are_characteristic_functions() -> None:
    truth = truth_of("full")
    target = target_of(truth, 20)
    rows = truth.draw(np.random.default_rng(0), np.array([200_000, 0, 0, 0]))
    expected = np.exp(-1j * rows @ target.omega.T).mean(axis=0)
    assert np.abs(target.atoms(truth)[:, 0] - expected).max() < 0.01


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_an_exact_sketch_gives_the_truth(covariance_type: str) -> None:
    truth = truth_of(covariance_type)
    found = match(target_of(truth), start_near(truth), shape_of(covariance_type))
    assert found.excess < 1e-3
    np.testing.assert_allclose(found.components.weights, truth.weights, atol=1e-3)
    np.testing.assert_allclose(found.components.means, truth.means, atol=1e-2)
    np.testing.assert_allclose(found.components.covariances, truth.covariances, atol=2e-2)


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_groups_of_components_that_hardly_overlap_find_it_too(
    covariance_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "MAX_TOGETHER", 15)
    truth = truth_of(covariance_type, spread=6.0)
    target = target_of(truth)
    start = start_near(truth)
    found = match(target, start, shape_of(covariance_type))
    assert found.excess < 0.01 * target.excess(target.residual(start))
    np.testing.assert_allclose(found.components.means, truth.means, atol=0.05)
    if covariance_type == "tied":
        own = found.components.covariances
        np.testing.assert_array_equal(own, np.broadcast_to(own[0], own.shape))


@pytest.mark.parametrize("covariance_type", COVARIANCE_TYPES)
def test_equations_are_those_of_finite_differences(covariance_type: str) -> None:
    truth = truth_of(covariance_type)
    target = target_of(truth, 60)
    start = start_near(truth)
    shape = shape_of(covariance_type)
    state = matching._State(target, start, shape)
    _, g = state._equations(np.arange(K), weights_only=False)

    def cost(step: np.ndarray) -> float:
        weights = start.weights + step[:K]
        means = start.means + step[K : K + K * N_FEATURES].reshape(K, -1)
        change = matching._unpack(step[K + K * N_FEATURES :], K, N_FEATURES, shape)
        moved = Components(weights, means, start.covariances + change)
        return target.m * target.excess(target.residual(moved))

    for i in range(len(g)):
        step = np.zeros(len(g))
        step[i] = 1e-5
        slope = (cost(step) - cost(-step)) / 2e-5
        assert slope == pytest.approx(-2 * g[i], rel=1e-3, abs=1e-3 * np.abs(g).max())


def test_covariances_stay_above_the_floor_and_within_limits() -> None:
    truth = truth_of("full")
    shape = Shape("full", np.full(N_FEATURES, 0.3))
    moved = truth.covariances - 5 * np.eye(N_FEATURES)
    limited = matching._limited(moved, truth, shape)
    assert np.linalg.eigvalsh(limited).min() >= 0.3 - 1e-9
    far = matching._limited(100 * truth.covariances, truth, shape)
    np.testing.assert_allclose(far, 5 * truth.covariances, rtol=1e-9)


def test_merging_and_splitting_lead_out_of_a_local_minimum() -> None:
    """Two components share one Gaussian, and one stands for two."""
    truth = truth_of("diag", spread=4.0)
    target = target_of(truth)
    shape = shape_of("diag")
    means = truth.means[[0, 0, 1, 2]]
    means[:2, 0] += [-1.0, 1.0]
    means[3] = truth.means[2:].mean(axis=0)
    start = Components(np.full(K, 1 / K), means, 2 * truth.covariances)
    stuck = match(target, start, shape)
    assert stuck.excess > 1
    found = regroup(target, stuck, shape, 100)
    assert found.excess < 0.01
    order = np.argsort(found.components.weights)
    expected = truth.means[np.argsort(truth.weights)]
    np.testing.assert_allclose(found.components.means[order], expected, atol=0.05)


def test_regrouping_leaves_what_explains_the_sketch() -> None:
    truth = truth_of("diag")
    target = target_of(truth)
    found = match(target, start_near(truth), shape_of("diag"))
    assert regroup(target, found, shape_of("diag"), 100).excess <= found.excess
    assert regroup(target, found, shape_of("diag"), 0) is found


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_weighting_frequencies_together_comes_closer_to_the_truth(covariance_type: str) -> None:
    """The squared error of the means, over samples of one mixture."""
    truth = truth_of(covariance_type)
    shape = shape_of(covariance_type)
    size = 5000
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = truth.draw(rng, rng.multinomial(size, truth.weights))
        exact = target_of(truth, 150)
        z = np.exp(-1j * rows @ exact.omega.T).mean(axis=0)
        target = Target(exact.omega, z, size, exact.lower, exact.upper)
        found = match(target, truth, shape)
        better = refine(target, found, shape)
        assert better.components.weights.sum() == pytest.approx(1)
        both = [((m.components.means - truth.means) ** 2).sum() for m in (found, better)]
        errors.append(both)
    before, after = np.mean(errors, axis=0)
    assert after < 0.9 * before


@pytest.mark.parametrize(("covariance_type", "m"), [("full", 100), ("tied", 100), ("diag", 600)])
def test_matrices_and_many_frequencies_are_left_as_they_are(covariance_type: str, m: int) -> None:
    truth = truth_of(covariance_type)
    found = Match(truth, 0.5)
    assert refine(target_of(truth, m), found, shape_of(covariance_type)) is found
