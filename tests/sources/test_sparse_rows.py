"""Sources of sparse rows: as they are where asked for, in chunks of so many numbers."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import ckm
from ckm._sources import ColumnRequest, ReadSettings, Source, open_rows, open_source
from ckm._sources.adapters import InUnits, Weighted, WithoutMissing
from ckm._util.sparse import SparseRows
from ckm.errors import DataError, InputFileError, NonFiniteError

SMALL = ReadSettings(chunk_bytes=12 * 40)


def matrix(n_rows: int = 100, n: int = 30, dtype: Any = np.float64) -> sp.csr_array:
    rng = np.random.default_rng(0)
    X = sp.random(n_rows, n, density=0.1, format="csr", random_state=rng, dtype=np.float64)
    X.data = rng.integers(1, 100, len(X.data)).astype(dtype)
    return sp.csr_array(X)


def dense(source: Source) -> np.ndarray:
    return np.concatenate([np.asarray(chunk.rows) for chunk in source.chunks()])


SPARSE = {
    "csr": lambda X: X,
    "csc": lambda X: X.tocsc(),
    "coo": lambda X: X.tocoo(),
    "list": lambda X: [X[:30], X[30:30], X[30:]],
    "generator": lambda X: iter([X[:30], X[30:]]),
    "function": lambda X: lambda: iter([X[:30], X[30:]]),
    "some dense": lambda X: [X[:30], X[30:].toarray()],
}
every_kind = pytest.mark.parametrize("kind", SPARSE)


@every_kind
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sparse_rows_are_those_of_the_matrix(kind: str, dtype: Any) -> None:
    X = matrix(dtype=dtype)
    source = open_source(SPARSE[kind](X), settings=SMALL)
    assert source.stay_sparse()
    assert source.is_sparse
    rows = dense(source)
    assert np.array_equal(rows, X.toarray())
    assert rows.dtype == (np.float32 if dtype == np.float32 else np.float64)


@every_kind
def test_chunks_of_sparse_rows_have_few_numbers(kind: str) -> None:
    source = open_source(SPARSE[kind](matrix()), settings=SMALL)
    source.stay_sparse()
    chunks = list(source.chunks())
    assert all(isinstance(chunk.rows, SparseRows) for chunk in chunks)
    assert len(chunks) > 7
    for chunk in chunks:
        numbers = chunk.rows.numbers()
        assert numbers.stop - numbers.start <= 40


@every_kind
def test_rows_are_dense_unless_asked_for(kind: str) -> None:
    X = matrix()
    source = open_source(SPARSE[kind](X), settings=SMALL)
    assert all(isinstance(chunk.rows, np.ndarray) for chunk in source.chunks())
    if source.is_rereadable:
        assert np.array_equal(dense(source), X.toarray())


def test_one_row_with_more_numbers_than_a_chunk_is_a_chunk() -> None:
    X = sp.csr_array(np.arange(1.0, 201.0).reshape(2, 100))
    source = open_source(X, settings=SMALL)
    source.stay_sparse()
    assert [len(chunk.rows) for chunk in source.chunks()] == [1, 1]


def test_rows_of_zeros_are_counted_and_cut() -> None:
    source = open_source(sp.csr_array((1000, 5)), settings=SMALL)
    source.stay_sparse()
    assert {len(chunk.rows) for chunk in source.chunks()} == {40}
    assert sum(len(chunk.rows) for chunk in source.chunks()) == 1000


def test_numbers_at_the_same_place_are_added() -> None:
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), (1, 3))
    source = open_source(X)
    source.stay_sparse()
    chunk = next(source.chunks())
    assert np.array_equal(np.asarray(chunk.rows), [[4.0, 3.0, 0.0]])
    assert len(chunk.rows.values) == 2
    assert X.nnz == 3


@every_kind
def test_reading_resumes_at_any_chunk(kind: str) -> None:
    X = matrix()

    def opened() -> Source:
        source = open_source(SPARSE[kind](X), settings=SMALL)
        source.stay_sparse()
        return source

    for chunk in list(opened().chunks())[:5]:
        rest = [np.asarray(later.rows) for later in opened().chunks(chunk.after)]
        assert np.array_equal(np.concatenate(rest), X[chunk.after.row :].toarray())


@every_kind
def test_a_sample_of_sparse_rows_is_sparse(kind: str) -> None:
    X = matrix()
    source = open_source(SPARSE[kind](X))
    source.stay_sparse()
    rows, weights = source.sample_rows(20, np.random.default_rng(0))
    assert isinstance(rows, SparseRows)
    assert rows.shape == (20, 30)
    assert np.array_equal(weights, np.ones(20))
    known = {row.tobytes() for row in X.toarray()}
    assert all(row.tobytes() in known for row in np.asarray(rows))


@every_kind
def test_sparse_and_dense_samples_have_the_same_rows(kind: str) -> None:
    sparse = open_source(SPARSE[kind](matrix()))
    sparse.stay_sparse()
    plain = open_source(SPARSE[kind](matrix()))
    drawn, _ = sparse.sample_rows(20, np.random.default_rng(1))
    expected, _ = plain.sample(20, np.random.default_rng(1))
    assert np.array_equal(np.asarray(drawn), expected)


def test_a_stream_that_has_begun_can_still_stay_sparse() -> None:
    X = matrix()
    source = open_source(iter([X[:50], X[50:]]), settings=SMALL)
    source.sample(5, np.random.default_rng(0))
    assert source.stay_sparse()
    assert all(isinstance(chunk.rows, SparseRows) for chunk in source._head)
    assert np.array_equal(dense(source), X.toarray())


def test_dense_sources_cannot_stay_sparse() -> None:
    assert not open_source(np.eye(3)).stay_sparse()
    assert not open_source([np.eye(3)]).stay_sparse()
    assert not WithoutMissing(open_source(np.eye(3))).stay_sparse()


def test_adapters_work_on_sparse_rows() -> None:
    X = matrix()
    weights = np.arange(100.0)
    source = InUnits(Weighted(open_source(X, settings=SMALL), weights), np.arange(1.0, 31.0))
    assert source.stay_sparse()
    chunks = list(source.chunks())
    assert all(isinstance(chunk.rows, SparseRows) for chunk in chunks)
    assert np.array_equal(dense(source), X.toarray() / np.arange(1.0, 31.0))
    assert np.array_equal(np.concatenate([chunk.weights for chunk in chunks]), weights)
    rows, _ = source.sample_rows(10, np.random.default_rng(0))
    assert isinstance(rows, SparseRows)
    assert len(rows) == 10


def test_rows_with_nan_among_their_numbers_are_missing() -> None:
    X = matrix()
    X.data[[5, 150]] = np.nan
    missing = np.isnan(X.toarray()).any(axis=1)
    source = open_rows(X, nan="drop")
    assert source.stay_sparse()
    assert np.array_equal(dense(source), X.toarray()[~missing])
    assert f"row {np.argmax(missing)}" in source.first
    rows, _ = source.sample_rows(1000, np.random.default_rng(0))
    assert len(rows) == 98


def test_a_number_that_is_not_finite_is_found_without_making_rows_dense() -> None:
    X = sp.csr_array((np.array([1.0, np.inf, np.nan]), np.array([7, 9, 3]), [0, 1, 3]), (2, 10**9))
    source = open_source(X)
    source.stay_sparse()
    # Any dense row of this width would take 8 GB.
    with pytest.raises(NonFiniteError) as caught:
        next(source.chunks()).require_finite(None)
    assert (caught.value.row, caught.value.column) == (1, 3)


def test_a_sample_has_the_precision_of_the_data() -> None:
    rng = np.random.default_rng
    X = rng(0).normal(size=(300, 4))
    for dtype, expected in [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i8", "f8")]:
        for data in (X.astype(dtype), [X.astype(dtype)]):
            rows, _ = open_source(data).sample_rows(50, rng(0))
            assert rows.dtype == np.dtype(expected)
            rows, _ = open_source(data).sample(50, rng(0))
            assert rows.dtype == np.float64


# Files of sparse matrices


def saved(X: Any, path: Path, compressed: bool = True) -> Path:
    sp.save_npz(path, X, compressed=compressed)
    return path


FILES = {
    "compressed": lambda X, d: saved(X, d / "x.npz"),
    "plain": lambda X, d: saved(X, d / "x.npz", False),
    "csc": lambda X, d: saved(X.tocsc(), d / "x.npz"),
    "coo": lambda X, d: saved(X.tocoo(), d / "x.npz", False),
    "matrix": lambda X, d: saved(sp.csr_matrix(X), d / "x.npz"),
    "several": lambda X, d: [saved(X[:30], d / "0.npz"), saved(X[30:], d / "1.npz", False)],
}
every_file = pytest.mark.parametrize("kind", FILES)


@every_file
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_matrices_in_files_are_sparse_or_dense_rows(kind: str, dtype: Any, tmp_path: Path) -> None:
    X = matrix(dtype=dtype)
    source = open_source(FILES[kind](X, tmp_path), settings=SMALL)
    assert (source.n_rows, source.n_features) == X.shape
    assert np.array_equal(dense(source), X.toarray())
    assert source.stay_sparse()
    chunks = list(source.chunks())
    assert len(chunks) > 7
    assert all(isinstance(chunk.rows, SparseRows) for chunk in chunks)
    assert np.array_equal(dense(source), X.toarray())


@every_file
def test_files_resume_at_any_chunk(kind: str, tmp_path: Path) -> None:
    source = open_source(FILES[kind](matrix(), tmp_path), settings=SMALL)
    source.stay_sparse()
    chunks = list(source.chunks())
    for i, chunk in enumerate(chunks[:-1]):
        rest = list(source.chunks(chunk.after))
        assert [later.start for later in rest] == [later.start for later in chunks[i + 1 :]]
        assert np.array_equal(np.asarray(rest[0].rows), np.asarray(chunks[i + 1].rows))


@every_file
def test_files_are_sampled(kind: str, tmp_path: Path) -> None:
    X = matrix(2000)
    source = open_source(FILES[kind](X, tmp_path))
    source.stay_sparse()
    rows, _ = source.sample_rows(50, np.random.default_rng(0))
    assert isinstance(rows, SparseRows)
    assert rows.shape == (50, 30)
    known = {row.tobytes() for row in X.toarray()}
    assert all(row.tobytes() in known for row in np.asarray(rows))


@every_file
def test_files_give_the_sketch_of_the_matrix(kind: str, tmp_path: Path) -> None:
    X = matrix()
    options: dict[str, Any] = {"sketch_size": 10, "random_state": 0}
    path = FILES[kind](X, tmp_path)
    assert ckm.sketch(path, **options) == ckm.sketch(X.toarray(), **options)


def test_files_of_several_widths_are_refused(tmp_path: Path) -> None:
    paths = [saved(matrix(n=n), tmp_path / f"{n}.npz") for n in (30, 31)]
    with pytest.raises(DataError, match="has 31 columns where"):
        open_source(paths)


def test_other_archives_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", rows=np.eye(3), labels=np.arange(3))
    with pytest.raises(InputFileError, match="labels, rows, not a sparse matrix"):
        open_source(tmp_path / "x.npz")
    (tmp_path / "y.npz").write_bytes(b"no archive at all")
    with pytest.raises(InputFileError, match="damaged or not a sparse matrix"):
        open_source(tmp_path / "y.npz")


@pytest.mark.parametrize("compressed", [True, False])
def test_damaged_matrices_are_refused(compressed: bool, tmp_path: Path) -> None:
    X = matrix()
    path = tmp_path / "x.npz"
    save = np.savez_compressed if compressed else np.savez
    parts = {"format": b"csr", "shape": X.shape, "data": X.data, "indptr": X.indptr}
    for name, indices, indptr, message in [
        (
            "column",
            np.where(np.arange(X.nnz) == 70, 30, X.indices),
            X.indptr,
            "in column 30, of 30",
        ),
        ("below", np.where(np.arange(X.nnz) == 70, -1, X.indices), X.indptr, "in column -1, of 30"),
        ("order", X.indices, X.indptr[::-1], "rows do not follow each other"),
        ("short", X.indices[:-5], X.indptr, "rows do not follow each other"),
    ]:
        save(path, indices=indices, **(parts | {"indptr": indptr}))
        with pytest.raises(InputFileError, match=message):
            list(open_source(path).chunks())
        assert name
    whole = saved(X, path, compressed).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputFileError, match="damaged"):
        open_source(path)


def test_a_wide_file_is_never_dense(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = sp.random(200, 10**6, density=1e-4, format="csr", random_state=rng)
    path = saved(X, tmp_path / "x.npz", False)
    tracemalloc.start()
    try:
        source = open_source(path)
        source.stay_sparse()
        numbers = sum(chunk.rows.numbers().stop for chunk in source.chunks())
        source.sample_rows(100, rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert numbers == X.nnz
    # One dense row alone would be 8 MB.
    assert peak < 4e6


# Tables with a column of column numbers and one of values


def as_lists(X: Any, names: tuple[str, str] = ("indices", "values"), n: int | None = None) -> Any:
    rows = [X[[i]] for i in range(X.shape[0])]
    table = pa.table(
        {
            names[0]: pa.array([row.indices for row in rows], pa.list_(pa.int32())),
            names[1]: pa.array([row.data for row in rows], pa.list_(pa.float64())),
            "w": np.arange(X.shape[0], dtype=float),
        }
    )
    return table.replace_schema_metadata({} if n is None else {"n_features": str(n)})


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("names", [("indices", "values"), ("idx", "val")])
def test_lists_of_column_numbers_and_values(ending: str, names: Any, tmp_path: Path) -> None:
    X = matrix()
    path = tmp_path / f"x.{ending}"
    write = pq.write_table if ending == "parquet" else pyarrow.feather.write_feather
    write(as_lists(X, names, 40), path)
    columns = None if names[0] == "indices" else names
    request = ColumnRequest(columns=columns, weight="w")
    source = open_source(path, request, SMALL)
    assert source.n_features == 40
    assert np.array_equal(dense(source)[:, :30], X.toarray())
    assert source.stay_sparse()
    chunks = list(source.chunks())
    assert len(chunks) > 7
    assert np.array_equal(np.concatenate([chunk.weights for chunk in chunks]), np.arange(100.0))
    assert np.array_equal(dense(source)[:, :30], X.toarray())
    rest = list(source.chunks(chunks[3].after))
    assert np.array_equal(np.asarray(rest[0].rows), np.asarray(chunks[4].rows))
    assert isinstance(source.sample_rows(10, np.random.default_rng(0))[0], SparseRows)


def test_the_largest_column_number_tells_the_width(tmp_path: Path) -> None:
    X = matrix()
    pq.write_table(as_lists(X), tmp_path / "x.parquet", row_group_size=9)
    source = open_source(tmp_path / "x.parquet", ColumnRequest(weight="w"))
    assert source.n_features == 1 + X.indices.max()


@pytest.mark.parametrize(
    ("indices", "values", "message"),
    [
        ([[0], [1, 2]], [[1.0], [2.0]], "Row 1 of .* has 2 column numbers and 1 values"),
        ([[0], [7]], [[1.0], [2.0]], "Row 1 of .* not one of 0 to 4"),
        ([[0], [-1]], [[1.0], [2.0]], "Row 1 of .* not one of 0 to 4"),
        ([[0], None], [[1.0], [2.0]], r"Row 1 of .* is missing \(null\)"),
    ],
)
def test_lists_that_are_no_sparse_rows(
    indices: Any, values: Any, message: str, tmp_path: Path
) -> None:
    table = pa.table({"indices": indices, "values": values})
    path = tmp_path / "x.parquet"
    pq.write_table(table.replace_schema_metadata({"n_features": "5"}), path)
    with pytest.raises(DataError, match=message):
        list(open_source(path).chunks())
