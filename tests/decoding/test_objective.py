"""The objective of equation (4): values of the paper's formulas, exact gradients."""

from dataclasses import replace
from functools import partial

import numpy as np
import oracle
import pytest
from decoding_cases import (
    frequencies,
    problem_and_mixture,
    problems,
    random_mixture,
    random_problem,
)
from hypothesis import given
from hypothesis import strategies as st

from ckm._core.moments import SecondMoment
from ckm._decoding.moments import moment_misfit
from ckm._decoding.objective import atoms, correlation
from ckm._decoding.objective_panels import PanelObjective
from ckm._decoding.problem import Problem


@given(problem=problems, K=st.integers(1, 5))
def test_values_are_those_of_the_papers_formulas(problem: Problem, K: int) -> None:
    C, alpha = random_mixture(problem, K)
    expected = oracle.cost(
        problem.z.tolist(), frequencies(problem).tolist(), C.tolist(), alpha.tolist()
    )
    assert problem.objective.cost(C, alpha)[0] == pytest.approx(expected, rel=1e-12)
    r = problem.objective.residual(C, alpha)
    assert np.vdot(r, r).real == pytest.approx(expected, rel=1e-12)
    expected = oracle.correlation(r.tolist(), frequencies(problem).tolist(), C[0].tolist())
    assert correlation(problem.omega, r, C[0])[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(problem=problems, K=st.integers(1, 300))
def test_the_correlations_of_many_points(problem: Problem, K: int) -> None:
    C, _ = random_mixture(problem, K)
    found = problem.objective.correlations(C, problem.z)
    np.testing.assert_allclose(
        found, (atoms(problem.omega, C).conj() @ problem.z).real, rtol=1e-10, atol=1e-10
    )


@given(problem=problems, K=st.integers(1, 5))
def test_gradients_are_finite_differences(problem: Problem, K: int) -> None:
    C, alpha = random_mixture(problem, K)
    h = 1e-5
    # Central differences err by h^2 times third derivatives (m |omega|^3, |omega| < 10) and by
    # rounding (1e-16 m / h): both below 1e-6 m.
    tolerance = 1e-6 * problem.m

    def slope(value: object, x: np.ndarray) -> np.ndarray:
        steps = np.eye(x.size).reshape(-1, *x.shape) * h
        return np.array([(value(x + e) - value(x - e)) / (2 * h) for e in steps]).reshape(x.shape)

    _, in_C, in_alpha = problem.objective.cost(C, alpha)
    np.testing.assert_allclose(
        in_C, slope(lambda x: problem.objective.cost(x, alpha)[0], C), rtol=0, atol=tolerance
    )
    np.testing.assert_allclose(
        in_alpha, slope(lambda x: problem.objective.cost(C, x)[0], alpha), rtol=0, atol=tolerance
    )
    blurred, *_, in_width = problem.objective.blurred_cost(C, alpha, 0.3)
    assert blurred == pytest.approx(
        np.vdot(r := problem.objective.residual(C, alpha, 0.3), r).real, rel=1e-12
    )
    ahead, behind = (problem.objective.blurred_cost(C, alpha, 0.3 + step)[0] for step in (h, -h))
    # |omega|^2, up to 100, stands before each term
    assert in_width == pytest.approx((ahead - behind) / (2 * h), abs=100 * tolerance)
    _, in_c = correlation(problem.omega, problem.z, C[0])
    np.testing.assert_allclose(
        in_c,
        slope(lambda x: correlation(problem.omega, problem.z, x)[0], C[0]),
        rtol=0,
        atol=tolerance,
    )


@given(problem=problems, K=st.integers(1, 6), twice=st.booleans())
def test_fitted_weights_are_optimal(problem: Problem, K: int, twice: bool) -> None:
    """Karush, Kuhn and Tucker: no weight is negative, and the cost falls neither along a positive
    one nor by raising a zero.
    """
    C, _ = random_mixture(problem, K)
    if twice:
        C[-1] = C[0]  # two atoms in one place: not one optimum but many
    alpha = problem.objective.fit_weights(C)
    slope = problem.objective.cost(C, alpha)[2]
    assert alpha.shape == (K,)
    assert (alpha >= 0).all()
    assert (slope >= -1e-9 * problem.m).all()
    assert np.abs(slope[alpha > 0]).max(initial=0) <= 1e-9 * problem.m


@pytest.mark.parametrize("function", ["gaussian_cost", "moment_misfit"])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_gradients_of_gaussians_are_finite_differences(function: str, n: int) -> None:
    problem, *mixture = problem_and_mixture(n, n)
    costs = {
        "gaussian_cost": problem.objective.gaussian_cost,
        "moment_misfit": partial(moment_misfit, problem),
    }
    cost = costs[function]
    _, *gradients = cost(*mixture)
    step = 1e-6
    for part, gradient in enumerate(gradients):
        for index in np.random.default_rng(0).permutation(list(np.ndindex(gradient.shape)))[:8]:
            values = []
            for sign in (-1, 1):
                moved = [x.copy() for x in mixture]
                moved[part][tuple(index)] += sign * step
                values.append(cost(*moved)[0])
            assert gradient[tuple(index)] == pytest.approx(
                (values[1] - values[0]) / (2 * step), rel=1e-5, abs=1e-7
            )


@pytest.mark.parametrize("n", [3, 20])
def test_atoms_with_widths_are_the_sketches_of_gaussians(n: int) -> None:
    """The cost of a mixture is that of the complex sum, written out; and of one width, that of
    `blurred_cost`.
    """
    problem, C, alpha, widths = problem_and_mixture(n, 0)
    omega = 2 * np.pi * problem.omega.turns.T
    model = sum(
        a * np.exp(-1j * omega @ c - omega**2 @ w / 2)
        for c, a, w in zip(C, alpha, widths, strict=True)
    )
    assert problem.objective.gaussian_cost(C, alpha, widths)[0] == pytest.approx(
        float((np.abs(problem.z - model) ** 2).sum()), rel=1e-9
    )
    shared = (
        problem.objective.gaussian_cost(C, alpha, np.full(C.shape, 0.7)),
        problem.objective.blurred_cost(C, alpha, 0.7),
    )
    assert shared[0][0] == pytest.approx(shared[1][0], rel=1e-9)
    np.testing.assert_allclose(shared[0][1], shared[1][1], atol=1e-9)
    assert shared[0][3].sum() == pytest.approx(shared[1][3], rel=1e-9)


def test_moments_of_a_mixture() -> None:
    """A mixture with the data's own moments has no misfit."""
    problem, C, alpha, widths = problem_and_mixture(3, 1)
    shares = alpha / alpha.sum()
    covariance = np.cov(C.T, aweights=shares, bias=True) + np.diag(shares @ widths)
    same = replace(problem, mean=shares @ C, covariance=SecondMoment(covariance))
    assert moment_misfit(same, C, alpha, widths)[0] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("m", [1, 63, 64, 65, 300])
@pytest.mark.parametrize(("K", "n"), [(1, 1), (5, 3), (6, 4), (13, 17)])
def test_panels_of_frequencies_give_the_same_in_single_precision(m: int, K: int, n: int) -> None:
    problem = random_problem(m, m, n)
    C, alpha = random_mixture(problem, K)
    widths = np.random.default_rng(m).uniform(0.1, 2, size=(K, n))
    panels = problem.rough_objective
    assert isinstance(panels, PanelObjective)
    for method, width in [("gaussian_cost", widths), ("blurred_cost", 0.3), ("blurred_cost", 0.0)]:
        expected = getattr(problem.objective, method)(C, alpha, width)
        # Phases of up to ten turns err by 2^-24 of that, waves by 4e-6; sums of waves cancel.
        for own, exact in zip(getattr(panels, method)(C, alpha, width), expected, strict=True):
            np.testing.assert_allclose(own, exact, rtol=0, atol=1e-4 * np.abs(exact).max())


def test_memory_that_panels_keep_changes_nothing() -> None:
    """Mixtures of other sizes before this one, and large ones by matrix products."""
    problem = random_problem(0, 200, 3)
    mixtures = {K: random_mixture(problem, K) for K in (40, 7)}
    first = {K: problem.rough_objective.cost(*mixtures[K]) for K in mixtures}
    for K in (40, 7, 40):
        again = problem.rough_objective.cost(*mixtures[K])
        for own, before in zip(again, first[K], strict=True):
            np.testing.assert_array_equal(own, before)


def test_mixtures_too_large_for_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(0, 200, 3)
    mixture = random_mixture(problem, 40)
    expected = problem.rough_objective.cost(*mixture)
    monkeypatch.setattr("ckm._decoding.objective_panels._MAX_NUMBERS", 10)
    for own, exact in zip(problem.rough_objective.cost(*mixture), expected, strict=True):
        np.testing.assert_allclose(own, exact, rtol=0, atol=1e-4 * np.abs(exact).max())
