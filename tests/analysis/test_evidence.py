"""The residual of Gaussians against chance: right where they are, and a verdict that follows."""

from functools import cache

import numpy as np
import pytest

import ckm
from ckm._analysis.evidence import Chance
from ckm._analysis.fitting import FittedPoint
from ckm._analysis.one_shape import (
    OneShapeMixture,
    fit_components,
    one_component,
    tied_components,
)
from ckm._analysis.verdict import Explanation, judge
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.problem import Problem

K = 3
N = 3000


@cache
def _truth() -> tuple[np.ndarray, np.ndarray]:
    """Means, and a root of the covariance that all clusters share."""
    rng = np.random.default_rng(0)
    return 6 * rng.standard_normal((K, 2)), np.array([[1.0, 0.0], [0.8, 0.6]])


def _rows(seed: int) -> np.ndarray:
    means, root = _truth()
    rng = np.random.default_rng([1, seed])
    return means[rng.integers(K, size=N)] + rng.standard_normal((N, 2)) @ root.T


@cache
def _design() -> ckm.Sketch:
    return ckm.sketch(_rows(0), n_clusters=8, cells=0, random_state=0)


def _true_components(problem: Problem) -> OneShapeMixture:
    means, root = _truth()
    frequencies = _design().frequencies
    scaled = root / frequencies.step[:, None]
    C = frequencies.relative(means)
    return OneShapeMixture(C @ np.linalg.inv(scaled).T, np.full(K, 1 / K), np.ones(K), scaled)


def test_the_misfit_of_the_truth_is_chance() -> None:
    problem = Problem.of(_design())
    truth = _true_components(problem)
    chance = Chance.of(problem, truth, N)
    found = []
    for seed in range(40):
        problem = Problem.of(ckm.sketch(_rows(seed), like=_design()))
        found.append(Chance.of(problem, truth, N).explain(truth).misfit)
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(chance.expected, abs=4 * error)
    # A chi-square law has twice its mean as variance; the ridge takes some of it away.
    assert np.var(found) < 4 * chance.expected


def test_the_residual_has_its_derivatives() -> None:
    problem = Problem.of(_design())
    truth = _true_components(problem)
    target = Chance.of(problem, truth, N).target
    C = truth.means @ truth.root.T
    start = FittedPoint(target, tied_components(problem, C, truth.shares, 1.1 * truth.widths))
    derivatives = start.derivatives() @ target.whitening
    steps = 1e-5 * np.eye(len(derivatives))
    for step, expected in zip(steps, derivatives, strict=True):
        there = FittedPoint(target, start.moved(step)).whitened
        back = FittedPoint(target, start.moved(-step)).whitened
        assert np.allclose((back - there) / 2e-5, expected, atol=1e-4 * np.abs(derivatives).max())


def test_a_fit_lowers_the_misfit_to_chance() -> None:
    problem = Problem.of(_design())
    truth = _true_components(problem)
    moved = OneShapeMixture(truth.means + 0.3, truth.shares, 1.3 * truth.widths, truth.root)
    chance = Chance.of(problem, truth, N)
    start = chance.explain(moved)
    assert start.misfit > 5 * chance.expected
    found = chance.improve(start)
    assert found.misfit < 1.2 * chance.expected
    C = found.components.means @ found.components.root.T
    assert np.allclose(C, truth.means @ truth.root.T, atol=0.2)


def test_a_fit_that_starts_at_the_truth_stays_there() -> None:
    problem = Problem.of(_design())
    rows = problem_rows(problem)
    measure = GaussianMeasure.of(np.ones(len(rows)), rows, np.zeros(len(rows)))
    truth = _true_components(problem)
    C = truth.means @ truth.root.T
    start = fit_components(problem, measure, C, np.full(K, 1 / K))
    chance = Chance.of(problem, start, N)
    found = chance.improve(chance.explain(start))
    assert found.misfit <= chance.explain(start).misfit
    assert found.misfit < 2 * chance.expected
    assert np.allclose(found.components.means @ found.components.root.T, C, atol=0.3)


def problem_rows(problem: Problem) -> np.ndarray:
    return _design().frequencies.relative(_rows(0))


def test_one_component_has_the_moments_of_the_data() -> None:
    problem = Problem.of(_design())
    one = one_component(problem)
    assert np.allclose(one.means[0] @ one.root.T, problem.mean)
    assert np.allclose(one.root @ one.root.T, problem.covariance.matrix)


def test_groups_are_parted_by_valleys_and_joined_through_others() -> None:
    means = np.array([[0.0, 0.0], [1.5, 0.0], [3.0, 0.0], [12.0, 0.0]])
    line = OneShapeMixture(means, np.full(4, 0.25), np.ones(4), np.eye(2))
    groups = line.groups(0.5)
    assert groups[0] == groups[1] == groups[2] != groups[3]
    assert len(set(line.close_groups(1.0))) == 4
    assert len(set(line.close_groups(2.0))) == 2


def _explanation(means: list[float], misfit: float, expected: float = 100.0) -> Explanation:
    count = len(means)
    components = OneShapeMixture(
        np.array(means)[:, None], np.full(count, 1 / count), np.ones(count), np.eye(1)
    )
    return Explanation(components, misfit, expected, misfit + 30 * count)


def test_the_verdict_is_the_best_number_only_where_it_explains_and_is_apart() -> None:
    far = [0.0, 20.0, 40.0]
    explained = [_explanation(far[:1], 1e4), _explanation(far[:2], 1e3), _explanation(far, 100)]
    assert judge(explained).suggestion == 3
    near = [0.0, 1.7, 3.4]
    blurred = [_explanation(near[:1], 1e4), _explanation(near[:2], 1e3), _explanation(near, 100)]
    verdict = judge(blurred)
    assert verdict.suggestion is None
    assert verdict.runner_up == 3
    assert "overlap" in verdict.reason


def test_clusters_that_are_no_gaussians_are_counted_by_their_groups() -> None:
    pieces = [0.0, 1.5, 20.0, 21.5]
    found = [
        _explanation([10.0], 1e5),
        _explanation([0.7, 20.7], 1.5e3),
        _explanation([0.0, 1.5, 20.7], 1.3e3),
        _explanation(pieces, 1e3),
    ]
    verdict = judge(found)
    assert verdict.suggestion == 2
    assert "no Gaussians of one shape" in verdict.reason
    # Two Gaussians that are far worse than four do not stand for these groups.
    found[1] = _explanation([0.7, 20.7], 1e5)
    assert judge(found).suggestion is None


def test_one_gaussian_that_explains_is_one_cluster() -> None:
    assert judge([_explanation([0.0], 100), _explanation([0.0, 1.0], 99)]).suggestion == 1
