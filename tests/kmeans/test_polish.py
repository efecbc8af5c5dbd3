"""Polish is Lloyd's algorithm over streamed rows: it agrees with plain NumPy, never increases the
SSE, and stops when no centroid moves.
"""

import contextlib
import io
import json
import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

import ckm
from ckm import CompressiveKMeans
from ckm._cli.app import app
from ckm._kmeans.assign import Centroids
from ckm._kmeans.polish import Polished, polish
from ckm._sources import BEGINNING, Chunk, Place, Source, open_source
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import BLOCK_ROWS
from ckm.errors import DataError, MismatchError, NonFiniteError, ParameterError


class Cut(Source):
    """The rows of an array, cut where the test says."""

    def __init__(self, X: np.ndarray, cuts: list[int]) -> None:
        self.columns = None
        self.n_rows, self.n_features = X.shape
        self._parts = np.split(X, cuts)

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        return map(Chunk, self._parts)


class Unread(Cut):
    """Rows that must not be read."""

    def chunks(self, start: Place = BEGINNING) -> Iterator[Chunk]:
        pytest.fail("the data was read")


def lloyd(
    X: np.ndarray, C: np.ndarray, passes: int, beta: np.ndarray | None = None
) -> tuple[np.ndarray, list[float]]:
    """Plain NumPy, one cluster at a time: centroids, and the SSE that each pass started from."""
    X = X.astype(np.float64)
    C = C.copy()
    sse = []
    beta = np.ones(len(X)) if beta is None else beta
    for _ in range(passes):
        D = ((X[:, None, :] - C) ** 2).sum(axis=2)
        labels = D.argmin(axis=1)
        sse.append(float(beta @ D.min(axis=1)))
        for k in range(len(C)):
            mine = labels == k
            if beta[mine].sum() > 0:
                C[k] = np.average(X[mine], axis=0, weights=beta[mine])
    return C, sse


def assert_same(a: Polished, b: Polished) -> None:
    assert a.centroids.tobytes() == b.centroids.tobytes()
    assert a[1:] == b[1:]


def model(**options: Any) -> CompressiveKMeans:
    return CompressiveKMeans(**({"n_clusters": 6, "random_state": 0, "polish": 2} | options))


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    """More than two blocks of rows without clusters: centroids keep moving for many passes."""
    X = np.random.default_rng(0).normal(size=(2 * BLOCK_ROWS + 777, 3))
    X.flags.writeable = False
    return X


# The passes


@given(
    count=st.integers(1, 60),
    K=st.integers(1, 9),
    n=st.integers(1, 4),
    passes=st.integers(0, 5),
    seed=st.integers(0, 1000),
    dtype=st.sampled_from([np.float32, np.float64]),
    weighted=st.booleans(),
)
def test_a_pass_agrees_with_plain_numpy(
    count: int, K: int, n: int, passes: int, seed: int, dtype: type, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, n)).astype(dtype)
    C = rng.normal(size=(K, n))
    w = rng.uniform(0, 2, size=count) * (rng.random(count) < 0.8) if weighted else None
    for array in (X, C):
        array.flags.writeable = False
    found = polish(open_source(X), C, passes, weights=w)
    expected, sse = lloyd(X, C, passes, w)
    np.testing.assert_allclose(found.centroids, expected, rtol=1e-12, atol=1e-12)
    # A centroid on its only row may be off by rounding, 1e-16: its square is no error.
    np.testing.assert_allclose(found.sse, sse[: len(found.sse)], rtol=1e-12, atol=1e-30)
    assert found.settled or len(found.sse) == passes


def test_many_blocks_agree_with_plain_numpy(X: np.ndarray) -> None:
    w = np.random.default_rng(1).uniform(0, 2, size=len(X))
    for weights in (None, w):
        found = polish(open_source(X), X[:8], 4, weights=weights)
        expected, sse = lloyd(X, X[:8], 4, weights)
        np.testing.assert_allclose(found.centroids, expected, rtol=1e-11)
        np.testing.assert_allclose(found.sse, sse, rtol=1e-12)


@given(seed=st.integers(0, 1000), K=st.integers(1, 20), weighted=st.booleans())
def test_no_pass_increases_the_sse(seed: int, K: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(500, 2)) * rng.lognormal(size=2)
    w = rng.exponential(size=500) if weighted else None
    found = polish(open_source(X), rng.normal(size=(K, 2)) * 3, 30, weights=w)
    sse = [*found.sse, Centroids(found.centroids).sse(ArraySource(X, weights=w))]
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(sse))
    assert sse[-1] < sse[0]


def test_it_stops_when_nothing_moves(clusters: np.ndarray) -> None:
    start = np.array([[1.0, 1.0], [10.0, 1.0], [1.0, 10.0]])
    found = polish(open_source(clusters), start, 100)
    assert found.settled
    assert len(found.sse) == 2, "one pass to move, one to see that nothing moves"
    again = polish(open_source(clusters), found.centroids, 100)
    np.testing.assert_allclose(again.centroids, found.centroids, atol=1e-13)
    one = polish(open_source(clusters), start, 1)
    assert not one.settled
    assert one.centroids.tobytes() == found.centroids.tobytes()


def test_it_settles_on_rows_without_clusters(X: np.ndarray) -> None:
    """The same labels must give bit-identical centroids, or the last digit would never settle."""
    X = X[:3000] + 1e6
    found = polish(open_source(X), X[:5], 1000)
    assert found.settled
    assert np.array_equal(
        polish(open_source(X), X[:5], len(found.sse) + 7).centroids, found.centroids
    )


def test_a_centroid_without_rows_stays() -> None:
    X = np.array([[0.0], [1.0], [2.0], [50.0]])
    C = np.array([[1.5], [100.0], [1000.0]])
    assert polish(open_source(X), C, 5).centroids.tolist() == [[13.25], [100.0], [1000.0]]


def test_a_centroid_that_loses_its_rows_stays_where_it_came_to() -> None:
    X = np.array([[-1.5], [-1.0], [1.0], [1.5]])
    C = np.array([[-2.5], [0.0625], [2.5]])
    assert polish(open_source(X), C, 1).centroids.tolist() == [[-1.5], [0.0], [1.5]], (
        "the middle one has two rows, which it loses next"
    )
    assert polish(open_source(X), C, 2).centroids.tolist() == [[-1.25], [0.0], [1.25]]


def test_rows_of_weight_zero_are_ignored() -> None:
    X = np.array([[0.0], [3.0], [4.0]])
    C = np.array([[1.0], [5.0]])
    assert polish(open_source(X), C, 1, weights=np.array([1.0, 0.0, 0.0])).centroids.tolist() == [
        [0.0],
        [5.0],
    ]


def test_no_passes_change_nothing(X: np.ndarray) -> None:
    found = polish(open_source(X), X[:4], 0)
    assert np.array_equal(found.centroids, X[:4])
    assert (found.sse, found.settled) == ((), False)


def test_rows_far_from_zero_lose_no_precision() -> None:
    X = np.array([[0.0], [1.0], [10.0], [12.0]])
    assert polish(
        open_source(X + 2.0**40), np.array([[1.0], [9.0]]) + 2.0**40, 3
    ).centroids.tolist() == [[2.0**40 + 0.5], [2.0**40 + 11]]


# Bit-identical results


def test_threads_change_nothing(X: np.ndarray) -> None:
    w = np.random.default_rng(1).uniform(size=len(X))
    for weights in (None, w):
        one = polish(open_source(X), X[:7], 5, weights=weights, n_threads=1)
        for n_threads in (2, 4):
            assert_same(polish(open_source(X), X[:7], 5, weights=weights, n_threads=n_threads), one)


@pytest.mark.parametrize(
    "cuts",
    [
        [1],
        [BLOCK_ROWS - 1, BLOCK_ROWS + 1],
        [5, 5, 9000, 20000],
        [2 * BLOCK_ROWS],
        list(range(0, 2 * BLOCK_ROWS, 1000)),
    ],
    ids=["one row", "about a block", "an empty chunk", "whole blocks", "small"],
)
def test_chunks_change_nothing(X: np.ndarray, cuts: list[int]) -> None:
    w = np.random.default_rng(1).uniform(size=len(X))
    for weights in (None, w):
        whole = polish(open_source(X), X[:7], 3, weights=weights)
        assert_same(polish(Cut(X, cuts), X[:7], 3, weights=weights, n_threads=2), whole)


def test_files_and_frames_give_the_results_of_arrays(X: np.ndarray, tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    table = pa.table(dict(zip(names, X.T, strict=True)))
    np.save(tmp_path / "x.npy", X)
    pa_csv.write_csv(table, tmp_path / "x.csv")
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=5000)
    for i, start in enumerate((0, 100, 17000)):
        pq.write_table(table[start : (100, 17000, len(X))[i]], tmp_path / f"part-{i}.parquet")
    whole = polish(open_source(X), X[:7], 3)
    frames = [
        pd.DataFrame(X, columns=names),
        pl.DataFrame(X, schema=names),
        table,
        np.asfortranarray(X),
    ]
    for data in (
        *frames,
        *(str(tmp_path / name) for name in ("x.npy", "x.csv", "x.parquet", "part-*.parquet")),
    ):
        assert_same(polish(open_source(data), X[:7], 3, n_threads=2), whole)


def test_batches_of_several_dtypes_are_one_table(X: np.ndarray) -> None:
    single = X[:2000].astype(np.float32)
    whole = X[:2000].round()
    source = open_source([single, whole.astype(np.int64)])
    assert_same(polish(source, X[:5], 3), polish(open_source(np.vstack([single, whole])), X[:5], 3))


def test_weights_equal_repetition(X: np.ndarray) -> None:
    w = np.random.default_rng(1).integers(0, 4, size=len(X)).astype(np.float64)
    a = polish(open_source(X), X[:7], 3, weights=w)
    b = polish(open_source(np.repeat(X, w.astype(int), axis=0)), X[:7], 3)
    np.testing.assert_allclose(a.centroids, b.centroids, rtol=1e-11)
    np.testing.assert_allclose(a.sse, b.sse, rtol=1e-12)
    assert_same(
        polish(open_source(X), X[:7], 3, weights=np.ones(len(X))), polish(open_source(X), X[:7], 3)
    )
    scaled = polish(open_source(X), X[:7], 3, weights=8 * w)
    assert scaled.centroids.tobytes() == a.centroids.tobytes()


# Refusals


@pytest.mark.parametrize("passes", [-1, 1.5, True, "2", None, np.float64(2)])
def test_bad_numbers_of_passes(clusters: np.ndarray, passes: Any) -> None:
    message = "polish must be a whole number, at least 0; got"
    with pytest.raises(ParameterError, match=message):
        polish(open_source(clusters), clusters[:2], passes)
    with pytest.raises(ParameterError, match=message):
        CompressiveKMeans.from_sketch(
            ckm.sketch(clusters, n_clusters=3, random_state=0), 3, polish=passes
        )
    for method in ("fit", "partial_fit"):
        with pytest.raises(ParameterError, match=message):
            getattr(model(polish=passes), method)(Unread(clusters, []))


def test_bad_rows(clusters: np.ndarray) -> None:
    with pytest.raises(MismatchError, match="2 columns where the centroids have 3"):
        polish(open_source(clusters), np.zeros((2, 3)), 1)
    with pytest.raises(DataError, match="sample_weight has shape"):
        polish(open_source(clusters), clusters[:2], 1, weights=np.ones(3))
    rows = np.zeros((BLOCK_ROWS + 10, 2))
    rows[-1, 1] = np.nan
    with pytest.raises(NonFiniteError, match=f"Row {len(rows) - 1}, column 'north' holds NaN"):
        polish(
            open_source(pd.DataFrame(rows, columns=["east", "north"])), clusters[:2], 1, n_threads=2
        )


def test_polish_is_refused_where_rows_cannot_be_read_again(clusters: np.ndarray) -> None:
    message = "polish=2 visits all rows again.*set polish=0, or use fit"
    with pytest.raises(ParameterError, match=message):
        model().partial_fit(clusters)
    with pytest.raises(ParameterError, match=message):
        CompressiveKMeans.from_sketch(
            ckm.sketch(clusters, n_clusters=3, random_state=0), 3, polish=2
        )
    m = model().fit(clusters)
    centres = m.cluster_centers_
    with pytest.raises(ParameterError, match=message):
        m.partial_fit(clusters)
    assert np.array_equal(m.cluster_centers_, centres), "a refusal leaves the fit alone"


# The estimator


def test_fit_polishes_what_it_decoded(X: np.ndarray) -> None:
    plain = model(polish=0).fit(X)
    polished = model().fit(X)
    assert (plain.n_iter_, polished.n_iter_) == (1, 3)
    assert polished.solution_.centroids.tobytes() == plain.cluster_centers_.tobytes()
    assert polished.solution_.weights.tobytes() == plain.weights_.tobytes()
    assert polished.sketch_ == plain.sketch_
    assert np.array_equal(
        polished.cluster_centers_, polish(open_source(X), plain.cluster_centers_, 2).centroids
    )
    assert polished.inertia_ < plain.inertia_
    assert_consistent(polished, X)


def assert_consistent(m: CompressiveKMeans, X: np.ndarray, w: np.ndarray | None = None) -> None:
    """All attributes of a fit describe its final centroids."""
    assert np.array_equal(m.predict(X), m.labels_)
    assert m.score(X, sample_weight=w) == -m.inertia_
    shares = np.bincount(m.labels_, w, minlength=m.n_clusters)
    np.testing.assert_allclose(m.weights_, shares / shares.sum(), rtol=1e-14)
    assert m.transform(X).shape == (len(X), m.n_clusters)
    with pytest.raises(ValueError, match="read-only"):
        m.cluster_centers_[:] = 0


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_fit_with_weights(X: np.ndarray, dtype: type) -> None:
    w = np.random.default_rng(1).uniform(0, 2, size=len(X))
    m = model().fit(X.astype(dtype), sample_weight=w)
    assert m.cluster_centers_.dtype == dtype
    assert_consistent(m, X.astype(dtype), w)
    expected = lloyd(X.astype(dtype), m.solution_.centroids, 2, w)[0]
    np.testing.assert_allclose(
        m.cluster_centers_, expected, rtol=1e-10 if dtype == np.float64 else 1e-5
    )


def test_a_fit_settles_early(clusters: np.ndarray) -> None:
    m = model(n_clusters=3, polish=np.uint8(50)).fit(clusters)
    assert m.n_iter_ < 50
    means = [clusters[m.labels_ == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(m.cluster_centers_, means, rtol=1e-12)


@pytest.mark.slow
def test_a_fit_is_the_same_for_any_number_of_threads_and_any_kind_of_frame(X: np.ndarray) -> None:
    one = model(n_jobs=1).fit(X)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for m in (
        model(n_jobs=2).fit(X),
        model().fit(frame),
        model().fit(pl.DataFrame(frame)),
        pickle.loads(pickle.dumps(one)),
    ):
        assert m.cluster_centers_.tobytes() == one.cluster_centers_.tobytes()
        assert m.weights_.tobytes() == one.weights_.tobytes()
        assert (m.inertia_, m.n_iter_) == (one.inertia_, one.n_iter_)


def test_whole_weights_equal_repetition_in_a_fit() -> None:
    X = np.random.default_rng(0).normal(size=(200, 2)) * [1, 5]
    w = np.random.default_rng(1).integers(0, 4, size=200)
    a = model().fit(X, sample_weight=w)
    b = model().fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, rtol=1e-12)
    assert a.weights_.tobytes() == b.weights_.tobytes()


def test_batches_after_a_polished_fit_are_decoded_again(clusters: np.ndarray) -> None:
    m, plain = (model(n_clusters=3, polish=passes).fit(clusters) for passes in (2, 0))
    m.set_params(polish=0).partial_fit(clusters)
    assert not hasattr(m, "n_iter_")
    assert m.cluster_centers_.tobytes() == plain.partial_fit(clusters).cluster_centers_.tobytes()
    assert m.weights_.tobytes() == m.solution_.weights.tobytes()


def test_a_fit_without_polish_replaces_a_polished_one(clusters: np.ndarray) -> None:
    m = model(n_clusters=3).fit(clusters).set_params(polish=0).fit(clusters)
    assert m.n_iter_ == 1
    assert m.cluster_centers_.tobytes() == m.solution_.centroids.tobytes()


class WholeFits(CompressiveKMeans):
    """Without the method that refuses to polish."""

    partial_fit = property()


# Some checks fit eight clusters to four distinct rows, which gives a warning.
@pytest.mark.filterwarnings("ignore::ckm.errors.ClustersWarning")
@parametrize_with_checks([WholeFits(polish=2)])
def test_scikit_learn_convention(estimator: Any, check: Any) -> None:
    check(estimator)


# The command line


def run(*args: object, expect: int = 0) -> tuple[str, str]:
    out = io.StringIO()
    err = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as exit,
    ):
        app(args=[str(arg) for arg in args], prog_name="ckm")
    assert (exit.value.code or 0) == expect, err.getvalue()
    return out.getvalue(), err.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("x.npy", marks=pytest.mark.sampled),
        "x.csv",
        "x.parquet",
    ],
)
def test_the_command_agrees_with_the_estimator(
    X: np.ndarray, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    pa_csv.write_csv(table, "x.csv")
    pq.write_table(table, "x.parquet")
    out, err = run("fit", name, "-k", 6, "--polish", 3, "--json", "-o", "c.csv")
    record = json.loads(out)
    counts = json.loads(run("predict", name, "-c", "c.csv", "--json")[0])
    start = ckm.decode(ckm.sketch(name, n_clusters=6, pool=1000, random_state=0), 6, random_state=0)
    expected = polish(open_source(X), start.centroids, 3)
    np.testing.assert_array_equal(record["centroids"], expected.centroids)
    np.testing.assert_array_equal(record["weights"], np.array(counts["counts"]) / len(X))
    assert record["sse"] == counts["sse"]
    assert record["polish"] == {"passes": 3, "settled": False, "sse_before": list(expected.sse)}
    assert (
        f"Polished in 3 passes: SSE {expected.sse[0]:.6g} before, {record['sse']:.6g} after\n"
        in err
    )
    assert run("fit", name, "-k", 6, "--polish", 3, "-q", "-o", "d.csv")[1] == ""
    assert Path("c.csv").read_text() == Path("d.csv").read_text()


def test_the_command_reports_convergence_and_empty_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.repeat([[0.0, 0.0], [9.0, 9.0]], 50, axis=0))
    out, err = run("fit", "x.npy", "-k", 3, "--polish", 9, "--json")
    record = json.loads(out)
    assert record["polish"]["settled"]
    assert record["polish"]["passes"] < 9
    assert "(no centroid moved in the last)" in err
    assert ("are nearest to no row" in err) == (0.0 in record["weights"])
    assert 0.0 in record["weights"], "two places cannot make three clusters"


def test_without_the_option_nothing_is_polished(
    clusters: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", clusters)
    plain, none = (
        json.loads(run("fit", "x.npy", "-k", 3, "--json", "--sse", *more)[0])
        for more in ((), ("--polish", 0))
    )
    assert plain == none
    assert "polish" not in plain


@pytest.mark.parametrize("value", ["-1", "1.5", "much"])
def test_the_command_refuses_bad_values_before_reading(
    value: str, clusters: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", clusters)
    monkeypatch.setattr(ckm, "sketch", lambda *args, **kwargs: pytest.fail("the data was read"))
    assert "'--polish'" in run("fit", "x.npy", "-k", 3, "--polish", value, expect=2)[1]
