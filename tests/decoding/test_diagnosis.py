"""What may be wrong with a solution is found, and nothing else is."""

import re
from dataclasses import replace

import numpy as np
import pytest

import ckm
from ckm._cli.errors import in_options
from ckm._decoding.candidate import Candidate
from ckm._decoding.diagnosis import diagnose
from ckm._decoding.doubt import Doubt
from ckm._decoding.problem import Problem
from ckm._decoding.status import Status
from ckm.errors import ClustersWarning, SmallSketchWarning


def test_more_clusters_than_distinct_rows_starve() -> None:
    s = ckm.sketch(np.full((5, 2), 3.0), sketch_size=20, scale=1.0, random_state=0, cells=0)
    found = ckm.decode(s, 3, random_state=0)
    assert found.status is Status.STARVED
    assert found.weights.tolist() == [1.0, 0.0, 0.0]
    assert np.array_equal(found.centroids, np.full((3, 2), 3.0))
    assert "2 of 3 centroids have hardly any weight (below 0.0033)" in found.message


def test_centroids_of_hardly_any_weight_are_reported() -> None:
    """Of eight centroids from a sketch made for five clusters, some may have hardly any weight."""
    X = ckm.datasets.gaussian_mixture(20_000, 5, 3, separation=30, random_state=0).rows
    s = ckm.sketch(X, n_clusters=5, random_state=0, cells=0)
    found = [ckm.decode(s, K, random_state=0) for K in (5, 8)]
    assert found[0].status is Status.OK
    starved = int((found[1].weights < 0.01 / 8).sum())
    assert (f"{starved} of 8 centroids have hardly any weight" in found[1].message) == (starved > 0)
    assert (
        found[0].message
        == f"Found 5 centroids; the residual is {found[0].unexplained:.2g} times the noise floor."
    )


def found(C: np.ndarray, weights: list[float]) -> Candidate:
    return Candidate(C, np.array(weights), cost=0.0)


@pytest.mark.parametrize(("gap", "alike"), [(0.05, True), (1.0, False)])
def test_centroids_that_the_sketch_cannot_separate_are_merged(
    sketch: ckm.Sketch, gap: float, alike: bool
) -> None:
    """The gap is in units of sigma, the width of a cluster."""
    C = np.array([[0.0, 0.0], [gap, 0.0], [9.0, 9.0]])
    findings = diagnose(Problem.of(sketch), found(C, [0.3, 0.3, 0.4]), None)
    assert [finding.status for finding in findings] == ([Status.MERGED] if alike else [])
    assert all(
        "2 of 3 centroids are so close to another" in finding.sentence for finding in findings
    )


@pytest.mark.parametrize("weights", [[0.5, 0.0, 0.5], [0.9, 0.01, 0.09]])
def test_light_centroids_far_away_are_not_merged(sketch: ckm.Sketch, weights: list[float]) -> None:
    C = np.array([[0.0, 0.0], [4.0, 0.0], [9.0, 9.0]])
    assert Status.MERGED not in [
        finding.status for finding in diagnose(Problem.of(sketch), found(C, weights), None)
    ]


def test_a_measure_that_does_not_explain_the_sketch_is_a_finding(sketch: ckm.Sketch) -> None:
    problem = Problem.of(sketch)
    C = np.array([[0.0, 0.0], [9.0, 9.0]])
    assert diagnose(problem, found(C, [0.5, 0.5]), problem.noise) == ()
    (finding,) = diagnose(problem, found(C, [0.5, 0.5]), 0.01 * problem.m)
    assert finding.status is Status.UNEXPLAINED
    assert "RMS residual 0.1 per frequency; sampling noise explains 0.0" in finding.sentence
    assert "pool=1000" in finding.sentence


@pytest.mark.parametrize(
    ("factor", "status"),
    [(0.05, "other-spread"), (0.5, "ok"), (1, "ok"), (3, "ok"), (10, "other-spread")],
)
def test_frequencies_chosen_for_another_scale_are_a_finding(factor: float, status: str) -> None:
    """For example if units changed between a sketch and one made like it."""
    X = ckm.datasets.gaussian_mixture(5000, 4, 3, separation=3, random_state=0).rows
    sketch = ckm.sketch(factor * X, like=ckm.sketch(X, n_clusters=4, random_state=0, cells=0))
    found = ckm.decode(sketch, 4, random_state=0)
    assert found.status == status
    if status != "ok":
        (ratio,) = re.findall(r"The variance of these rows is (\S+) times that", found.message)
        assert float(ratio) == pytest.approx(factor**2, rel=0.1)


def test_a_column_of_large_variance_leaves_the_others_unresolved_and_not_suspect() -> None:
    """For example a row number that should have been left out: beside its variance no other column
    has outliers, and without cells none can be told.
    """
    X = np.column_stack([np.arange(5000.0), 0.1 * np.random.default_rng(0).normal(size=(5000, 2))])
    sketch = ckm.sketch(X, n_clusters=4, random_state=0, cells=0)
    assert Problem.of(sketch).has_trusted_moments
    with pytest.warns(ClustersWarning, match=r"of \[1\], \[2\], which hardly matter"):
        findings = ckm.decode(sketch, 4, random_state=0).findings
    assert [finding.status for finding in findings] == [Status.UNRESOLVED]
    assert "Sketch with --cells auto, or read the rows again (--polish 3): either makes them" in (
        in_options(findings[0].sentence)
    )
    with_cells = ckm.sketch(X, n_clusters=4, random_state=0)
    assert not ckm.decode(with_cells, 4, random_state=0).findings


def test_one_centroid_is_the_mean_without_findings() -> None:
    X = np.random.default_rng(0).gamma(1, size=(5000, 2))
    X[:3] += 1000
    for sketch in (
        ckm.sketch(X, n_clusters=3, random_state=0, cells=0),
        ckm.sketch(X, like=ckm.draw_frequencies(20, 2, spread=1e-3, seed=0)),
    ):
        found = ckm.decode(sketch, 1)
        np.testing.assert_allclose(found.centroids[0], X.mean(axis=0), rtol=1e-5)
        assert (found.status, found.message) == (
            Status.OK,
            "Found 1 centroid, the mean of the rows.",
        )


def test_a_complete_pool_has_no_findings() -> None:
    """The scale of the frequencies does not matter if all rows are in the pool."""
    X = ckm.datasets.gaussian_mixture(300, 3, 2, separation=5, random_state=0).rows
    like = ckm.sketch(0.01 * X, n_clusters=3, random_state=0, cells=0)
    assert ckm.decode(ckm.sketch(X, like=like, pool=300), 3, random_state=0).status is Status.OK
    assert ckm.decode(ckm.sketch(X, like=like), 3, random_state=0).status is Status.OTHER_SPREAD


@pytest.mark.parametrize(("pool", "cells"), [(0, 0), (200, 0), (0, "auto")])
def test_few_rows_are_in_doubt_unless_the_sketch_holds_them(pool: int, cells: int | str) -> None:
    X = ckm.datasets.gaussian_mixture(200, 10, 4, separation=10, random_state=0).rows
    s = ckm.sketch(X, n_clusters=10, random_state=0, pool=pool, cells=cells)
    found = ckm.decode(s, 10, random_state=0)
    assert (Status.UNCERTAIN in [finding.status for finding in found.findings]) == (
        s.cells is None and not pool
    )


def test_a_sketch_too_small_is_a_finding_and_a_warning() -> None:
    s = ckm.sketch(
        np.random.default_rng(0).normal(size=(2000, 4)), sketch_size=30, random_state=0, cells=0
    )
    with pytest.warns(SmallSketchWarning, match=r"fewer than 2 K n = 40 .* sketch_size=100"):
        found = ckm.decode(s, 5, random_state=0)
    assert found.status is Status.SMALL_SKETCH
    assert "fewer than 2 K n = 40" in found.message


@pytest.mark.parametrize(("ratio", "is_uncertain"), [(1.0, False), (3.0, False), (5.0, True)])
def test_rows_that_have_moved_are_doubted_sooner(
    sketch: ckm.Sketch, ratio: float, is_uncertain: bool
) -> None:
    """The same regret, 0.7 of its limit, where the variance is another than that of the rows that
    the frequencies were chosen for.
    """
    problem = Problem.of(sketch)
    variance = float(problem.covariance.diagonal.mean())
    problem = replace(problem, pilot_variances=np.full(problem.n, variance / ratio))
    C = np.array([[0.0, 0.0], [4.0, 0.0], [9.0, 9.0]])
    doubt = Doubt(regret=0.7 * problem.settings.max_regret)
    doubtful = found(C, [0.3, 0.3, 0.4])._replace(mean_square=1.0, is_doubtful=True, doubt=doubt)
    findings = diagnose(problem, doubtful, None)
    assert (Status.UNCERTAIN in [each.status for each in findings]) == is_uncertain
