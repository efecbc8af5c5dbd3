"""A result far above k-means has a status and a sentence that says what to do; a good one has
none. The whole battery is `benchmarks/statuses.py`.
"""

import numpy as np
import pytest
from decoding_cases import relative_sse

import ckm
from benchmarks.failures import FAILURES
from ckm._cli.errors import in_options
from ckm._decoding.candidate import Candidate
from ckm._decoding.diagnosis import diagnose
from ckm._decoding.doubt import Doubt
from ckm._decoding.problem import Problem
from ckm._decoding.status import Status

# A failure, what it is sketched with, and what is said of it.
QUICK = [
    ("weights 1 to 0.01", "sketch", "uncertain"),
    ("256 times the scale, Gaussian", "sketch", "other-spread"),
    ("20 times the unit", "sketch", "other-spread"),
    ("0.1 times the unit", "cells", "uncertain"),
    ("200 outliers at 30", "sketch", "far-out"),
]
SAMPLED = ("mostly one row", "sketch", "uncertain")
LONG = [
    ("64 clusters, n=20, K=16", "sketch", "uncertain"),
    ("widths 1 to 10", "sketch", "uncertain"),
    ("widths 1 to 100", "pool", "uncertain"),
    ("100 rows left", "sketch", "uncertain"),
]


@pytest.mark.parametrize(
    ("name", "variant", "status"),
    [
        *QUICK,
        *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG),
        pytest.param(*SAMPLED, marks=[pytest.mark.slow, pytest.mark.sampled]),
    ],
)
def test_a_result_far_above_k_means_says_so(name: str, variant: str, status: str) -> None:
    made = FAILURES[name](0)
    sketch = made.sketch(0, cells=variant == "cells", pool=variant == "pool")
    found = ckm.decode(sketch, made.K, random_state=0)
    assert relative_sse(made.X, found.centroids) > 1.05
    assert status in [finding.status for finding in found.findings]
    for finding in found.findings:
        assert "sketch" in finding.sentence.lower()
        assert any(verb in finding.sentence for verb in ("ketch with", "ketch the", "ask for"))


@pytest.mark.parametrize("cells", [0, "auto"])
@pytest.mark.parametrize(("K", "n"), [(5, 2), (10, 10), (5, 30)])
def test_the_papers_data_raises_no_doubt(K: int, n: int, cells: int | str) -> None:
    X = ckm.datasets.gaussian_mixture(20_000, K, n, random_state=3).rows
    found = ckm.decode(ckm.sketch(X, n_clusters=K, cells=cells, random_state=0), K, random_state=0)
    assert (found.status, found.findings) == (Status.OK, ())


@pytest.mark.parametrize("make", ["gamma", "uniform"])
def test_cells_of_overlapping_clusters_raise_no_doubt(make: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.gamma(2, size=(20_000, 4)) if make == "gamma" else rng.uniform(size=(20_000, 4))
    found = ckm.decode(ckm.sketch(X, n_clusters=8, random_state=0), 8, random_state=0)
    assert (found.status, relative_sse(X, found.centroids) < 1.02) == (Status.OK, True)


def found(doubt: Doubt, *, is_counted: bool = False) -> Candidate:
    """Two centroids of the fixture's sketch that nothing but `doubt` speaks against."""
    C = np.array([[0.0, 0.0], [9.0, 9.0]])
    weights = np.full(2, 0.5)
    return Candidate(C, weights, 0.0, 1.0, is_doubtful=True, doubt=doubt, is_counted=is_counted)


@pytest.mark.parametrize(
    ("doubt", "is_counted", "seen"),
    [
        (Doubt(0.03, 0.05), False, None),
        (Doubt(0.4, 0.2), False, "On other data with the same sketch, other centroids would have "),
        (Doubt(0.04, 0.09), False, "these centroids would have an SSE that differs by 9%"),
        (Doubt(0.0, 0.5), False, "these centroids would have an SSE that differs by 50%"),
        (Doubt(0.04), False, None),
        (Doubt(0.04), True, "On other data with the same cells, other centroids would have 4% "),
    ],
)
def test_doubt_is_a_finding(
    sketch: ckm.Sketch, doubt: Doubt, is_counted: bool, seen: str | None
) -> None:
    findings = diagnose(Problem.of(sketch), found(doubt, is_counted=is_counted), 0.0)
    assert [finding.status for finding in findings] == ([Status.UNCERTAIN] if seen else [])
    assert all(str(seen) in finding.sentence for finding in findings)


def test_advice_names_what_the_sketch_does_not_have(clusters: np.ndarray) -> None:
    doubt = found(Doubt(0.5))
    without = ckm.sketch(clusters, sketch_size=60, random_state=0, cells=0)
    (finding,) = diagnose(Problem.of(without), doubt, 0.0)
    assert (
        "Sketch with cells='auto', a pool of rows (pool=1000) or more frequencies "
        "(sketch_size=120), or refine the centroids on the data "
        "(ckm.CompressiveKMeans(..., polish=3))." in finding.sentence
    )
    assert "--cells auto, a pool of rows (--pool 1000)" in in_options(finding.sentence)
    assert "(--polish 3)" in in_options(finding.sentence)
    cells = ckm.sketch(clusters, n_clusters=3, sketch_size=60, random_state=0)
    (finding,) = diagnose(Problem.of(cells), doubt, 0.0, pool=1000)
    assert "cells='auto'" not in finding.sentence
    twice = 2 * int((cells.cells.mass > 0).sum())
    assert f"Sketch with cells={twice}, a larger pool of rows (pool=4000)" in finding.sentence


def test_outliers_that_a_pool_missed_ask_for_a_larger_one() -> None:
    """The pool that was used is not the advice."""
    X = np.random.default_rng(0).normal(size=(5000, 2))
    X[0] = 1e4
    problem = Problem.of(ckm.sketch(X, n_clusters=3, random_state=0, cells=0))
    assert not problem.has_trusted_moments
    for pool, advice in ((0, "(pool=1000)"), (1000, "(pool=4000)")):
        findings = diagnose(problem, found(Doubt()), 0.0, pool=pool)
        (sentence,) = [f.sentence for f in findings if f.status is Status.FAR_OUT]
        assert advice in sentence


@pytest.mark.parametrize(
    ("gap", "is_counted", "is_merged"),
    [(0.05, False, True), (0.05, True, False), (1e-6, True, True)],
)
def test_counted_centroids_are_merged_only_if_they_are_equal(
    sketch: ckm.Sketch, gap: float, is_counted: bool, is_merged: bool
) -> None:
    """Cells separate what the frequencies do not."""
    candidate = found(Doubt(), is_counted=is_counted)._replace(C=np.array([[0.0, 0.0], [gap, 0.0]]))
    statuses = [finding.status for finding in diagnose(Problem.of(sketch), candidate, 0.0)]
    assert (Status.MERGED in statuses) is is_merged


def test_more_clusters_than_distinct_rows_are_said_to_be_equal() -> None:
    X = np.repeat(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]), 500, axis=0)
    found = ckm.decode(ckm.sketch(X, n_clusters=6, random_state=0), 6, random_state=0)
    assert found.status is Status.MERGED
    assert "centroids are equal to another, up to rounding" in found.message
    exact = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
    assert exact.status is Status.OK
