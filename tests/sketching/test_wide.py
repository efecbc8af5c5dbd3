"""Sketches of wide rows: projected to a few numbers, with sums over cells in all columns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import ckm
from ckm._core.projection import Projection
from ckm._core.storage import deserialise, serialise
from ckm._kernels.cpu.projecting import Projector
from ckm._util.sparse import SparseRows
from ckm.errors import MismatchError, NonFiniteError, ParameterError, SketchFileError

N = 600
WIDTH = 80


def clusters(seed: int = 0, n: int = WIDTH, K: int = 4, rows: int = N) -> np.ndarray:
    """Rows in K clusters, a third of whose numbers are zero."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(K, n))
    X = centres[rng.integers(K, size=rows)] + rng.normal(size=(rows, n))
    X[:, rng.permutation(n)[: n // 3]] = 0
    return X.astype(np.float32)


X = clusters()
LIKE = ckm.sketch(X, n_clusters=4, random_state=0)


def test_rows_of_many_columns_are_projected() -> None:
    assert LIKE.frequencies.projection is not None
    assert LIKE.frequencies.n == LIKE.frequencies.projection.d < WIDTH
    assert LIKE.frequencies.n_features == WIDTH
    assert LIKE.cells is not None
    assert LIKE.cells.wide.shape == (len(LIKE.cells.anchors), WIDTH)
    assert ckm.sketch(X[:, :63], n_clusters=4, random_state=0).frequencies.projection is None
    plain = ckm.sketch(X, n_clusters=4, projection=None, random_state=0)
    assert plain.frequencies.projection is None
    structured = ckm.sketch(X, n_clusters=4, distribution="structured", random_state=0)
    assert structured.frequencies.projection is None


def test_the_projection_is_the_specified_sequence_of_float32_operations() -> None:
    projection = LIKE.frequencies.projection
    y = Projector(projection)(X[:5])
    for row, found in zip(X[:5], y, strict=True):
        expected = np.zeros(projection.d, np.float32)
        for c in range(WIDTH):
            # float64 holds the product of two float32 numbers exactly, and rounds their sum once
            # more than a fused multiply-add; longdouble does not.
            exact = projection.coefficients[:, c].astype(np.longdouble) * np.longdouble(row[c])
            expected = (exact + expected).astype(np.float32)
        assert np.array_equal(found, expected)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, N), st.integers(1, 4), st.randoms(use_true_random=False))
def test_any_split_order_and_number_of_threads_give_the_same_bits(
    cut: int, n_jobs: int, random: object
) -> None:
    order = np.random.default_rng(random.randrange(2**32)).permutation(N)  # type: ignore[attr-defined]
    shuffled = X[order]
    parts = [
        ckm.sketch(part, like=LIKE, n_jobs=n_jobs) for part in (shuffled[:cut], shuffled[cut:])
    ]
    both = parts[0] + parts[1]
    assert both == LIKE
    rest = both - parts[1]
    assert np.array_equal(rest.tally.sums, parts[0].tally.sums)
    assert rest.cells.identity() == parts[0].cells.identity()
    assert np.allclose(both.mean, X.mean(axis=0, dtype=np.float64), rtol=1e-6, atol=1e-9)
    assert np.allclose(both.covariance, X.var(axis=0, dtype=np.float64), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", ["csr_array", "csc_matrix"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_give_the_bits_of_dense_ones(kind: str, dtype: type) -> None:
    matrix = getattr(sparse, kind)(X.astype(dtype))
    assert ckm.sketch(matrix, like=LIKE) == LIKE
    # The sample is the same, but its moments are added up in another order.
    own = ckm.sketch(matrix, n_clusters=4, random_state=0)
    assert own.frequencies.n == LIKE.frequencies.n


def test_an_origin_is_subtracted_from_rows_far_from_zero() -> None:
    far = X.astype(np.float64) + 1e6
    s = ckm.sketch(far, n_clusters=4, random_state=0)
    assert s.frequencies.projection.origin is not None
    assert ckm.sketch(sparse.csr_array(far), like=s) == s
    found = ckm.decode(s, 4, random_state=0).centroids - 1e6
    expected = ckm.decode(LIKE, 4, random_state=0).centroids
    gaps = np.linalg.norm(found[:, None] - expected, axis=2)
    assert gaps.min(axis=1).max() < 0.1 * np.linalg.norm(X.std(axis=0))


def test_weights_are_repetition() -> None:
    beta = np.random.default_rng(0).integers(1, 4, size=N)
    weighted = ckm.sketch(X, like=LIKE, sample_weight=beta)
    repeated = ckm.sketch(np.repeat(X, beta, axis=0), like=LIKE)
    assert np.array_equal(weighted.tally.sums, repeated.tally.sums)
    for own, other in zip(weighted.cells.arrays, repeated.cells.arrays, strict=True):
        assert np.array_equal(own, other)
    assert np.allclose(weighted.mean, repeated.mean, rtol=1e-9, atol=1e-12)
    sparse_rows = ckm.sketch(sparse.csr_array(X), like=LIKE, sample_weight=beta)
    assert np.array_equal(sparse_rows.cells.wide, weighted.cells.wide)


def test_centroids_have_all_columns() -> None:
    for options in ({}, {"cells": 0}, {"projection": 6}, {"standardize": True}):
        s = ckm.sketch(X, n_clusters=4, random_state=0, **options)
        solution = ckm.decode(s, 4, random_state=0)
        assert solution.centroids.shape == (4, WIDTH)
        labels = solution.predict(X)
        means = np.array([X[labels == k].mean(axis=0, dtype=np.float64) for k in range(4)])
        least = ((X - means[labels]) ** 2).sum()
        sse = ((X - solution.centroids[labels]) ** 2).sum()
        assert sse <= 1.02 * least, options


def test_a_cluster_across_the_axes_is_lifted_from_its_cells() -> None:
    """Columns that a matrix leaves out still have their means, from the sums over cells."""
    s = ckm.sketch(X, n_clusters=4, projection=np.eye(10, WIDTH), random_state=0)
    labels = ckm.decode(s, 4, random_state=0).predict(X)
    found = ckm.decode(s, 4, random_state=0).centroids
    means = np.array([X[labels == k].mean(axis=0, dtype=np.float64) for k in range(4)])
    assert np.abs(found[:, 10:] - means[:, 10:]).max() < 0.1


def test_other_projections_do_not_merge() -> None:
    other = ckm.sketch(X, n_clusters=4, projection=5, random_state=0)
    with pytest.raises(MismatchError, match="rows projected to"):
        LIKE + other
    plain = ckm.sketch(X, n_clusters=4, projection=None, random_state=0)
    with pytest.raises(MismatchError, match="projected, those of the other are not"):
        LIKE + plain
    with pytest.raises(ParameterError, match="projection=5 contradicts like"):
        ckm.sketch(X, like=LIKE, projection=5)


def test_files_keep_projections(tmp_path: Path) -> None:
    for s in (LIKE, LIKE.without_cells(), LIKE.scaled(0.5), ckm.sketch(X[:0], like=LIKE)):
        s.save(tmp_path / "s.ckm")
        loaded = ckm.load(tmp_path / "s.ckm")
        assert loaded == s
        assert loaded.frequencies.projection.fingerprint == s.frequencies.projection.fingerprint
        assert np.array_equal(loaded.tally.columns.second, s.tally.columns.second)
    data = serialise(LIKE)
    assert deserialise(data) == LIKE
    with pytest.raises(SketchFileError):
        deserialise(data[:-1])


@pytest.mark.parametrize("projection", ["axes", 0, 81, np.eye(3), np.ones((2, WIDTH)), object()])
def test_impossible_projections_are_refused(projection: object) -> None:
    with pytest.raises(ParameterError):
        ckm.sketch(X, n_clusters=4, projection=projection)


def test_values_that_are_not_finite_are_named() -> None:
    for value, row in ((np.nan, 3), (np.inf, 590), (1e39, 7)):
        bad = X.astype(np.float64)
        bad[row, 17] = value
        for rows in (bad, sparse.csr_array(bad)):
            with pytest.raises(NonFiniteError, match=rf"[Rr]ow {row}\b.*17"):
                ckm.sketch(rows, n_clusters=4)
            with pytest.raises(NonFiniteError, match=rf"[Rr]ow {row}\b.*17"):
                ckm.sketch(rows, like=LIKE)


@pytest.mark.filterwarnings("ignore::ckm.errors.PhaseWarning")
def test_numbers_beyond_int64_are_added_exactly() -> None:
    far = X.copy()
    far[5] *= 2.0**40
    s = ckm.sketch(far, like=LIKE)
    assert s.cells.exact
    assert (s - ckm.sketch(far[5:6], like=LIKE)).cells.identity() == (
        LIKE - ckm.sketch(X[5:6], like=LIKE)
    ).cells.identity()
    assert deserialise(serialise(s)) == s


def test_rows_that_vary_across_the_axes_are_noticed() -> None:
    """A column that is constant in the rows that chose the axes."""
    constant = X.copy()
    constant[:, 3] = 1
    like = ckm.sketch(constant, n_clusters=4, random_state=0)
    assert ckm.decode(like, 4, random_state=0).status == "ok"
    moved = constant.copy()
    moved[::2, 3] = 100
    with pytest.warns(ckm.errors.ClustersWarning, match="axes that rows were projected to"):
        found = ckm.decode(ckm.sketch(moved, like=like), 4, random_state=0)
    assert found.status == "other-axes"


def test_sorted_files_are_sampled_all_over(tmp_path: Path) -> None:
    ordered = X[np.argsort(X[:, 0])]
    np.save(tmp_path / "rows.npy", ordered)
    s = ckm.sketch(tmp_path / "rows.npy", n_clusters=4, random_state=0)
    assert ckm.decode(s, 4, random_state=0).status == "ok"


def test_streams_and_models_project_too() -> None:
    sketcher = ckm.Sketcher(like=LIKE)
    for start in range(0, N, 100):
        sketcher.update(X[start : start + 100])
    assert sketcher.result() == LIKE
    model = ckm.CompressiveKMeans(4, random_state=0).fit(X)
    assert model.cluster_centers_.shape == (4, WIDTH)
    assert model.cluster_centers_.dtype == np.float32
    again = ckm.CompressiveKMeans(4, random_state=0).fit(sparse.csr_array(X))
    assert np.array_equal(again.predict(X), again.labels_)
    assert again.inertia_ == pytest.approx(model.inertia_, rel=1e-3)


def test_a_matrix_need_not_be_orthonormal() -> None:
    axes = np.random.default_rng(0).normal(size=(6, WIDTH))
    projection = Projection(axes)
    y = projection.reduce(X[:3])
    lifted = projection.lift(y)
    assert np.allclose(projection.reduce(lifted), y, atol=1e-4)
    s = ckm.sketch(X, n_clusters=4, projection=axes, random_state=0)
    assert s.frequencies.n == 6


def test_rounded_projections_can_be_subtracted_although_bounds_differ_in_the_last_bits() -> None:
    whole = LIKE.tally
    part = ckm.sketch(X[:200], like=LIKE).tally
    rounded = replace(
        part,
        sums=part.sums.astype(np.float64),
        lower=part.lower - 1e-6,
        upper=part.upper + 1e-6,
    )
    assert (rounded.lower < whole.lower).any() or (rounded.upper > whole.upper).any()
    left = whole - rounded
    assert left.count == N - 200
    exact = replace(rounded, sums=part.sums)
    with pytest.raises(MismatchError):
        whole - exact


def test_more_columns_than_axes_can_have_are_projected_by_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ckm._sketching.axes.MAX_ENTRIES", 2**14)
    rng = np.random.default_rng(0)
    n = 3000
    labels = rng.integers(3, size=600)
    # 30 words of a text, 20 of them out of the 40 of its topic.
    topics = rng.integers(n, size=(3, 40))
    words = rng.integers(n, size=(600, 30))
    words[:, :20] = topics[labels[:, None], rng.integers(40, size=(600, 20))]
    rows = np.repeat(np.arange(600), 30)
    X = sparse.csr_array((np.ones(words.size, np.float32), (rows, words.ravel())), (600, n))
    X.sum_duplicates()
    s = ckm.sketch(X, n_clusters=3, random_state=0)
    projection = s.frequencies.projection
    assert projection is not None
    assert projection.is_signed
    assert projection.d == 128
    first = ckm.sketch(X[:250], like=s)
    assert (first + ckm.sketch(X[250:], like=s)).z.tobytes() == s.z.tobytes()
    s.save(tmp_path / "signs.ckm")
    assert ckm.load(tmp_path / "signs.ckm") == s
    with pytest.raises(MismatchError):
        _ = s + ckm.sketch(X, n_clusters=3, random_state=1)
    C = ckm.decode(s, 3, random_state=0).centroids
    assert np.allclose(projection.reduce(projection.lift(np.eye(128)[:2])), np.eye(128)[:2])
    found = np.asarray((X @ C.T) - (C**2).sum(axis=1) / 2).argmax(axis=1)
    assert adjusted_rand_score(labels, found) > 0.95


def test_signs_are_the_specified_operations_of_their_matrix() -> None:
    rng = np.random.default_rng(0)
    signed = Projection.random(5, 40, rng)
    dense = Projection(signed.coefficients)
    X = rng.normal(size=(30, 40)) * (rng.random((30, 40)) < 0.5)
    for rows in (X, SparseRows.of(sparse.csr_array(X))):
        assert Projector(signed)(rows).tobytes() == Projector(dense)(rows).tobytes()
    assert np.allclose(signed.lift(np.eye(5)), dense.lift(np.eye(5)))
    assert np.allclose(signed.gram, dense.gram)
    assert signed.fingerprint != dense.fingerprint
