"""What the noise of a private release is expected to do to centroids."""

import numpy as np
import pytest

import ckm
from ckm._decoding.candidate import Candidate
from ckm._decoding.diagnosis import diagnose
from ckm._decoding.noise_error import expected_error
from ckm._decoding.problem import Problem
from ckm._decoding.status import Status

CENTRES = np.array([[-6.0, 0.0], [6.0, 0.0], [0.0, 6.0]])


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(0)
    rows = CENTRES[rng.integers(3, size=5000)] + rng.standard_normal((5000, 2))
    design = ckm.public_frequencies(([-12, -12], [12, 12]), sketch_size=200, scale=1.0)
    return Problem.of(ckm.release(ckm.sketch(rows, like=design), 1.0, 1e-6))


def candidate(problem: Problem, weights: list[float]) -> Candidate:
    step = problem.coordinates.step
    cost = problem.noise
    return Candidate(
        problem.coordinates.relative(CENTRES), np.array(weights), cost, float((1 / step**2).sum())
    )


def test_a_centroid_moves_by_the_inverse_of_its_weight(problem: Problem) -> None:
    found = expected_error(problem, candidate(problem, [0.5, 0.4, 0.1]))
    np.testing.assert_allclose(found.displacements[2] / found.displacements[:2], [25, 16])
    assert found.excess == pytest.approx(np.dot([0.5, 0.4, 0.1], found.displacements))


def test_a_centroid_that_noise_may_have_made_is_said(problem: Problem) -> None:
    def sentences(weights: list[float]) -> list[str]:
        found = diagnose(problem, candidate(problem, weights), None)
        return [str(finding.sentence) for finding in found if finding.status is Status.UNCERTAIN]

    assert not any("noise" in sentence for sentence in sentences([0.35, 0.35, 0.3]))
    # So little weight that noise moves the centroid by half of its rows' squared spread.
    moved = expected_error(problem, candidate(problem, [0.45, 0.45, 0.1])).displacements[2]
    few = 0.1 * np.sqrt(moved / 0.5)
    [said] = [text for text in sentences([0.5, 0.5 - few, few]) if "noise" in text]
    assert f"may have made the centroid of weight {few:.2g}" in said
    assert "larger epsilon" in said
