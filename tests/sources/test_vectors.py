"""Columns and files of vectors: which column is used, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ckm
from ckm._sources import BEGINNING, ColumnRequest, ReadSettings, open_rows, open_source
from ckm.errors import ColumnsWarning, DataError, InputFileError, MismatchError, ParameterError

X = np.random.default_rng(0).normal(size=(50, 4))
SMALL = ReadSettings(chunk_bytes=8)


def lists(values: Any = X, inner: Any = None) -> pa.Array:
    rows = [None if row is None else list(row) for row in values]
    return pa.array(rows, pa.list_(inner or pa.float64()))


def fixed(values: np.ndarray = X, **columns: Any) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    return pa.table({"embedding": vectors, **columns})


def written(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "x.parquet", row_group_size=7)
    return folder / "x.parquet"


WAYS = {
    "parquet": written,
    "table": lambda table, d: table,
    "polars": lambda table, d: pl.from_arrow(table),
    "pandas": lambda table, d: table.to_pandas(),
    "reader": lambda table, d: table.to_reader(max_chunksize=7),
}
every_way = pytest.mark.parametrize("way", WAYS)


def rows_of(data: Any, **request: Any) -> np.ndarray:
    source = open_source(data, ColumnRequest(**request))
    return np.concatenate([chunk.rows for chunk in source.chunks()])


@every_way
@pytest.mark.parametrize("columns", ["embedding", ("embedding",), ["embedding"]])
def test_a_column_of_vectors_is_chosen_by_its_name(way: str, columns: Any, tmp_path: Path) -> None:
    data = WAYS[way](fixed(id=np.arange(50)), tmp_path)
    assert np.array_equal(rows_of(data, columns=columns), X)


@every_way
def test_other_numbers_are_used_if_the_vectors_are_not_named(way: str, tmp_path: Path) -> None:
    data = WAYS[way](fixed(id=np.arange(50)), tmp_path)
    with pytest.warns(ColumnsWarning, match=r"vectors of 4 numbers.*columns='embedding'"):
        rows = rows_of(data)
    assert np.array_equal(rows[:, 0], np.arange(50))


@every_way
def test_a_column_of_weights_goes_beside_vectors(way: str, tmp_path: Path) -> None:
    data = WAYS[way](fixed(w=np.arange(50.0)), tmp_path)
    source = open_source(data, ColumnRequest(weight="w"))
    assert source.n_features == 4
    assert source.columns is None
    weights = np.concatenate([chunk.weights for chunk in source.chunks()])
    assert np.array_equal(weights, np.arange(50.0))


@every_way
def test_the_first_list_of_another_length_is_named(way: str, tmp_path: Path) -> None:
    ragged = [list(row) for row in X]
    ragged[23] = [1.0, 2.0]
    ragged[31] = [1.0]
    data = WAYS[way](pa.table({"embedding": lists(ragged)}), tmp_path)
    message = r"Row 23 of .* list of 2 numbers in column 'embedding' where others have 4"
    with pytest.raises(DataError, match=message):
        ckm.sketch(data, sketch_size=5)


@every_way
def test_null_lists_and_nulls_in_lists_are_missing_values(way: str, tmp_path: Path) -> None:
    gaps: list[Any] = [list(row) for row in X]
    gaps[3] = None
    gaps[9] = [1.0, None, 2.0, 3.0]
    data = WAYS[way](pa.table({"embedding": lists(gaps)}), tmp_path)
    source = open_rows(data, nan="drop")
    rows = np.concatenate([chunk.rows for chunk in source.chunks()])
    assert np.array_equal(rows, np.delete(X, [3, 9], axis=0))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8"])
@pytest.mark.parametrize("way", ["parquet", "table", "pandas", "reader"])
def test_vectors_keep_their_numbers(way: str, dtype: str, tmp_path: Path) -> None:
    values = (10 * X).astype(dtype)
    data = WAYS[way](fixed(values), tmp_path)
    drawn, _ = open_source(data).sample_rows(500, np.random.default_rng(0))
    assert drawn.dtype == (np.float32 if dtype in ("f2", "f4") else np.float64)
    data = WAYS[way](fixed(values), tmp_path)
    assert np.array_equal(rows_of(data), values)


def test_pandas_objects_may_be_arrays_lists_and_tuples() -> None:
    cells = [X[0], list(X[1]), tuple(X[2]), None, X[4].astype(np.float32)]
    rows = rows_of(pd.DataFrame({"v": pd.Series(cells, dtype=object)}))
    assert np.array_equal(rows[:3], X[:3])
    assert np.isnan(rows[3]).all()


def test_pandas_objects_that_are_no_lists_are_refused() -> None:
    frame = pd.DataFrame({"v": pd.Series([X[0], "text"], dtype=object)})
    with pytest.raises(DataError, match="Row 1 of the data frame has str in column 'v'"):
        rows_of(frame)


def test_vectors_and_numbers_are_not_mixed(tmp_path: Path) -> None:
    data = fixed(id=np.arange(50))
    with pytest.raises(DataError, match="rows by themselves; use it alone"):
        rows_of(data, columns=["embedding", "id"])


def test_one_of_several_columns_of_vectors_must_be_named() -> None:
    data = fixed().append_column("other", fixed().column(0))
    with pytest.raises(DataError, match="several columns hold vectors"):
        rows_of(data)
    assert np.array_equal(rows_of(data, columns="other"), X)


@every_way
def test_vectors_are_found_beside_other_numbers_by_what_was_made_of_them(
    way: str, tmp_path: Path
) -> None:
    table = fixed(id=np.arange(50))
    sketch = ckm.sketch(table, n_clusters=2, columns="embedding", random_state=0)
    assert ckm.sketch(WAYS[way](table, tmp_path), like=sketch) == sketch
    growing = ckm.Sketcher(like=sketch).update(WAYS[way](table, tmp_path))
    assert growing.result() == sketch
    solution = ckm.decode(sketch, 2, random_state=0)
    labels = solution.predict(WAYS[way](table, tmp_path))
    assert np.array_equal(labels, solution.predict(X))
    mixture = ckm.fit_mixture(sketch, 2, random_state=0)
    assert np.array_equal(mixture.predict(WAYS[way](table, tmp_path)), mixture.predict(X))


def test_a_model_of_vectors_labels_the_file_that_it_was_fitted_to(tmp_path: Path) -> None:
    path = written(fixed(id=np.arange(50)), tmp_path)
    model = ckm.CompressiveKMeans(2, columns="embedding", random_state=0).fit(path)
    assert np.array_equal(model.predict(path), model.predict(X))


@pytest.mark.filterwarnings("ignore:Left out")
def test_columns_of_weights_and_users_are_not_counted() -> None:
    table = fixed(a=X[:, 0], b=X[:, 1], c=X[:, 2], d=X[:, 3], user=np.arange(50), w=np.ones(50))
    sketch = ckm.sketch(X, n_clusters=2, random_state=0)
    users = {"user_column": "user", "max_rows_per_user": 1, "weight_column": "w"}
    capped = ckm.sketch(table.drop_columns("embedding"), like=sketch, **users)
    assert ckm.sketch(table, like=sketch, **users) == capped


def test_as_many_other_numbers_are_used_as_before(tmp_path: Path) -> None:
    table = fixed(a=X[:, 0], b=X[:, 1], c=X[:, 2], d=X[:, 3])
    solution = ckm.decode(ckm.sketch(X, n_clusters=2, random_state=0), 2, random_state=0)
    with pytest.warns(ColumnsWarning, match="vectors of 4 numbers"):
        labels = solution.predict(table)
    assert np.array_equal(labels, solution.predict(X))


def test_vectors_of_another_length_are_refused(tmp_path: Path) -> None:
    solution = ckm.decode(ckm.sketch(X, n_clusters=2, random_state=0), 2, random_state=0)
    table = fixed(np.ones((5, 3)), id=np.arange(5))
    with pytest.raises(MismatchError, match="The data has 3 columns where this solution has 4"):
        solution.predict(table)


def test_files_have_vectors_of_one_length(tmp_path: Path) -> None:
    pq.write_table(fixed(), tmp_path / "a.parquet")
    pq.write_table(fixed(X[:, :3].copy()), tmp_path / "b.parquet")
    with pytest.raises(MismatchError, match="vectors of 3 numbers where others have 4"):
        open_source(tmp_path)


def test_lists_without_a_row_do_not_tell_their_length() -> None:
    with pytest.raises(DataError, match="no list to tell the number of coordinates from"):
        open_source(pa.table({"v": lists([])}))


def test_models_are_told_to_take_an_array() -> None:
    with pytest.raises(DataError, match=r"np.stack\(X\['embedding'\]\)"):
        ckm.CompressiveKMeans(2).fit(fixed().to_pandas())


# The files of benchmarks of nearest-neighbour search


def write_vecs(values: np.ndarray, path: Path) -> Path:
    kind = {".fvecs": "<f4", ".ivecs": "<i4", ".bvecs": "u1"}[path.suffix]
    with path.open("wb") as file:
        for row in values:
            file.write(np.int32(len(row)).tobytes() + np.asarray(row, kind).tobytes())
    return path


@pytest.mark.parametrize("ending", [".fvecs", ".ivecs", ".bvecs"])
def test_files_of_vectors(ending: str, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, size=(600, 5))
    path = write_vecs(values, tmp_path / f"x{ending}")
    source = open_source(path, settings=SMALL)
    chunks = list(source.chunks())
    assert len(chunks) == 3
    assert np.array_equal(np.concatenate([chunk.rows for chunk in chunks]), values)
    rest = list(source.chunks(chunks[0].after))
    assert np.array_equal(np.concatenate([chunk.rows for chunk in rest]), values[256:])
    assert (source.n_rows, source.n_features, chunks[0].start) == (600, 5, BEGINNING)
    assert ckm.sketch(path, sketch_size=9, random_state=0) == ckm.sketch(
        values.astype(np.float32 if ending == ".fvecs" else np.int64), sketch_size=9, random_state=0
    )


def test_cut_files_of_vectors_are_refused(tmp_path: Path) -> None:
    path = write_vecs(X, tmp_path / "x.fvecs")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputFileError, match="the last one is cut"):
        open_source(path)
    path.write_bytes(b"\1\0")
    with pytest.raises(InputFileError, match="2 bytes"):
        open_source(path)


def test_rows_of_another_length_are_refused(tmp_path: Path) -> None:
    # As many bytes as three rows of four values.
    path = write_vecs([X[0], X[1, :2], [*X[2], *X[3, :2]]], tmp_path / "x.fvecs")
    with pytest.raises(InputFileError, match="row 1 announces 2 values where the first has 4"):
        list(open_source(path).chunks())


def test_other_files_are_not_taken_for_vectors(tmp_path: Path) -> None:
    path = tmp_path / "x.bvecs"
    path.write_bytes(b"text that is no vectors")
    with pytest.raises(InputFileError, match="announces 1954047348 values"):
        open_source(path)


def test_files_of_vectors_have_no_names(tmp_path: Path) -> None:
    path = write_vecs(X, tmp_path / "x.fvecs")
    with pytest.raises(ParameterError, match=r"\.fvecs file has no column names"):
        open_source(path, ColumnRequest(columns=["a"]))
