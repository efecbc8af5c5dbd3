"""The estimator on data that is not an array: files, queries, streams, sparse matrices."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from fits import model

from ckm.errors import DataError, MismatchError, ParameterError

NAMES = ("east", "north")


@pytest.fixture
def files(clusters: np.ndarray, tmp_path: Path) -> str:
    table = pa.table(list(clusters.T), names=NAMES)
    pq.write_table(table.slice(0, 700), tmp_path / "a.parquet")
    pq.write_table(table.slice(700).select(["north", "east"]), tmp_path / "b.parquet")
    return str(tmp_path / "*.parquet")


@pytest.mark.parametrize("polish", [0, 2])
def test_files_give_what_arrays_give(clusters: np.ndarray, files: str, polish: int) -> None:
    """The same sums; the pool may be another sample, and moments are added in another order."""
    from_files = model(polish=polish, pool=0).fit(files)
    in_memory = model(polish=polish, pool=0).fit(pd.DataFrame(clusters, columns=NAMES))
    assert from_files.sketch_.z.tobytes() == in_memory.sketch_.z.tobytes()
    np.testing.assert_allclose(
        from_files.cluster_centers_, in_memory.cluster_centers_, rtol=1e-6, atol=1e-6
    )
    assert from_files.weights_ == pytest.approx(in_memory.weights_, rel=1e-6)
    assert list(from_files.feature_names_in_) == list(NAMES)
    assert (from_files.n_features_in_, from_files.n_iter_) == (2, in_memory.n_iter_)
    assert not hasattr(from_files, "labels_")
    assert np.array_equal(from_files.predict(files), in_memory.labels_)
    np.testing.assert_allclose(
        from_files.transform(files),
        in_memory.transform(pd.DataFrame(clusters, columns=NAMES)),
        rtol=1e-5,
    )
    assert from_files.score(files) == pytest.approx(-in_memory.inertia_, rel=1e-6)
    if polish:
        assert from_files.inertia_ == pytest.approx(in_memory.inertia_, rel=1e-6)


def test_many_kinds_of_data(clusters: np.ndarray, files: str) -> None:
    expected = model().fit(clusters)
    sources = {
        "lazy": lambda: pl.scan_parquet(files),
        "batches": lambda: [clusters[:50], clusters[50:]],
        "function": lambda: lambda: iter([clusters]),
        "iterator": lambda: iter([clusters[:9], clusters[9:]]),
        "reader": lambda: pa.table(list(clusters.T), names=NAMES).to_reader(),
    }
    for make in sources.values():
        fitted = model().fit(make())
        assert fitted.cluster_centers_.tobytes() == expected.cluster_centers_.tobytes()
        assert np.array_equal(fitted.predict(make()), expected.labels_)
        assert np.array_equal(
            fitted.predict(clusters)
            if not hasattr(fitted, "feature_names_in_")
            else expected.labels_,
            expected.labels_,
        )


@pytest.mark.parametrize(
    "kind",
    [
        "csr_array",
        pytest.param("csc_matrix", marks=pytest.mark.slow),
        pytest.param("coo_array", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.slow), np.float64])
def test_sparse_matrices_give_what_arrays_give(
    clusters: np.ndarray, kind: str, dtype: type
) -> None:
    X = (clusters * (clusters > 3)).astype(dtype)
    A = getattr(scipy.sparse, kind)(X)
    w = np.arange(len(X)) % 3
    for options in ({}, {"sample_weight": w}):
        sparse, dense = model().fit(A, **options), model().fit(X, **options)
        assert sparse.cluster_centers_.tobytes() == dense.cluster_centers_.tobytes()
        assert sparse.cluster_centers_.dtype == dtype
        assert np.array_equal(sparse.labels_, dense.labels_)
        assert sparse.inertia_ == pytest.approx(dense.inertia_, rel=1e-10)
        assert sparse.score(A) == pytest.approx(dense.score(X), rel=1e-10)
    assert np.array_equal(sparse.predict(A), dense.predict(X))
    # Distances are added up from nonzeros: the same numbers up to rounding to `dtype`.
    rounding = max(1e-10, float(np.finfo(dtype).eps))
    np.testing.assert_allclose(sparse.transform(A), dense.transform(X), rtol=rounding)
    polished = model(polish=1).fit(A, sample_weight=w)
    expected = model(polish=1).fit(X, sample_weight=w)
    np.testing.assert_allclose(polished.cluster_centers_, expected.cluster_centers_, rtol=rounding)
    assert np.array_equal(polished.labels_, expected.labels_)
    assert model().partial_fit(A).partial_fit(X).sketch_.count == 2 * len(X)


def test_fit_predict_reads_twice_where_it_can(clusters: np.ndarray, files: str) -> None:
    assert np.array_equal(
        model().fit_predict(files), model().fit_predict(pd.DataFrame(clusters, columns=NAMES))
    )
    assert np.array_equal(model().fit_predict([clusters]), model().fit_predict(clusters))
    weighted = model().fit_predict(files, sample_weight=np.ones(len(clusters)))
    assert len(weighted) == len(clusters)
    with pytest.raises(DataError, match=r"second pass.*once only"):
        model().fit_predict(iter([clusters]))


def test_polish_needs_data_that_can_be_read_again(clusters: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="polish=1 visits all rows again"):
        model(polish=1).fit(iter([clusters]))


def test_partial_fit_takes_files(clusters: np.ndarray, files: str) -> None:
    m = model().partial_fit(files).partial_fit(files)
    assert m.sketch_.count == 2 * len(clusters)
    assert m.sketch_.columns == NAMES
    assert m.cluster_centers_.shape == (3, 2)


def test_columns_are_found_by_name(clusters: np.ndarray, files: str, tmp_path: Path) -> None:
    m = model().fit(files)
    shuffled = pa.table(
        {
            "more": ["x"] * 2000,
            "north": clusters[:, 1],
            "spare": clusters[:, 0],
            "east": clusters[:, 0],
        }
    )
    pq.write_table(shuffled, tmp_path / "shuffled")
    (tmp_path / "shuffled").rename(tmp_path / "other.parquet")
    assert np.array_equal(
        m.predict(tmp_path / "other.parquet"), m.predict(str(tmp_path / "[ab].parquet"))
    )
    pq.write_table(shuffled.drop_columns("east"), tmp_path / "other.parquet")
    with pytest.raises(MismatchError, match="no column 'east', which this model was made with"):
        m.predict(tmp_path / "other.parquet")
    np.save(tmp_path / "wide.npy", np.zeros((5, 3)))
    with pytest.raises(MismatchError, match="X has 3 columns where this model has 2"):
        m.predict(tmp_path / "wide.npy")


def test_too_few_rows_are_found_before_the_pass(tmp_path: Path) -> None:
    np.save(tmp_path / "two.npy", np.eye(2))
    with pytest.raises(
        DataError, match=r"The data has 2 rows \(n_samples=2\), too few for n_clusters=3"
    ):
        model().fit(tmp_path / "two.npy")
