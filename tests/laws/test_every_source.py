"""Laws that hold for every source: the same values give the same sketch, not nearly but bit for
bit.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from every_source import (
    ARRAYS,
    EVERY,
    LIKE,
    LISTED,
    NAMES,
    ONCE,
    OPENED,
    PLAIN,
    TABLES,
    as_table,
    values,
)

import ckm
from ckm._core.sketch import Sketch
from ckm._sources import ReadSettings, open_source
from ckm.errors import ColumnsWarning, DataError, MissingRowsWarning, NonFiniteError

SMALL_CHUNKS = ReadSettings(chunk_bytes=1024 * 8 * 3)

Folder = Callable[[], Path]

every_source = pytest.mark.parametrize("source", EVERY)
every_table = pytest.mark.parametrize("source", TABLES)


@pytest.fixture(autouse=True)
def files() -> Iterator[None]:
    """Some sources are open files, or take the place of standard input."""
    before = sys.stdin
    yield
    sys.stdin = before
    while OPENED:
        OPENED.pop().close()


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[], Path]:
    """A new folder with each call."""
    return lambda: Path(mkdtemp(dir=tmp_path))


def sketch(data: Any, **options: Any) -> Sketch:
    return ckm.sketch(data, **({"like": LIKE} | options))


# Values


@every_source
def test_the_same_rows_give_the_same_sketch(source: str, folder: Folder) -> None:
    X = values()
    assert sketch(EVERY[source](X, folder())) == sketch(X)


@every_source
def test_one_row(source: str, folder: Folder) -> None:
    X = values(1)
    assert sketch(EVERY[source](X, folder())) == sketch(X)


@pytest.mark.parametrize(
    "source",
    [
        name
        for name in EVERY
        if name
        not in {
            "list",
            "batches of tuples",
            "batches of lists",
            "cursor",
            "pandas, vectors",
            "list of frames, vectors",
            *LISTED,
        }
    ],
)
def test_no_rows(source: str, folder: Folder) -> None:
    """Where columns are known without a row."""
    assert sketch(EVERY[source](values()[:0], folder())) == Sketch.empty(LIKE.frequencies, NAMES)


@every_source
def test_small_data_draws_the_same_frequencies(source: str, folder: Folder) -> None:
    """Up to 5000 rows the pilot is all of them, whatever they come from."""
    X = values(200)
    s = ckm.sketch(EVERY[source](X, folder()), sketch_size=10, random_state=3)
    assert s.frequencies == ckm.sketch(X, sketch_size=10, random_state=3).frequencies
    assert s.columns == (NAMES if source in TABLES else None)


@every_source
def test_weights_go_beside_any_rows(source: str, folder: Folder) -> None:
    X = values()
    w = np.random.default_rng(1).integers(0, 3, size=3000)
    weighted = sketch(EVERY[source](X, folder()), sample_weight=w)
    assert weighted.z.tobytes() == sketch(np.repeat(X, w, axis=0)).z.tobytes()
    assert weighted.count == np.count_nonzero(w)


# Chunks


@every_source
def test_chunks_are_bounded_and_follow_each_other(source: str, folder: Folder) -> None:
    X = values()
    opened = open_source(EVERY[source](X, folder()), settings=SMALL_CHUNKS)
    assert opened.is_rereadable == (source not in ONCE)
    chunks = list(opened.chunks())
    assert max(len(chunk.rows) for chunk in chunks) <= 1024
    assert np.array_equal(np.concatenate([chunk.rows for chunk in chunks]), X)
    for before, after in pairwise(chunks):
        assert before.after == after.start or (
            after.start.part > before.after.part and after.start.row == 0
        )
    assert opened.n_features == 3
    assert opened.n_rows in (len(X), None)
    assert opened.n_bytes is None or opened.n_bytes > 0
    if opened.is_rereadable:
        assert np.array_equal(np.concatenate([chunk.rows for chunk in opened.chunks()]), X)
    else:
        with pytest.raises(DataError, match=r"read once only.*again"):
            list(opened.chunks())


@every_source
def test_reading_continues_from_any_place(source: str, folder: Folder) -> None:
    """From where a chunk ends the rest can be read, also by another source of the same data. The
    name of a part is that of a file.
    """
    X = values()
    data = EVERY[source](X, folder())
    opened = open_source(data, settings=SMALL_CHUNKS)
    done = 0
    chunks = list(opened.chunks())
    for chunk in chunks:
        assert chunk.name is None or chunk.name == opened.parts[chunk.start.part]
        done += len(chunk.rows)
        if source not in ONCE:
            rest = list(open_source(data, settings=SMALL_CHUNKS).chunks(chunk.after))
            assert np.array_equal(np.concatenate([X[:0], *(part.rows for part in rest)]), X[done:])
            assert not rest or rest[0].start[:2] >= chunk.after[:2]


@every_source
def test_samples_are_rows_of_the_source(source: str, folder: Folder) -> None:
    X = values()
    opened = open_source(EVERY[source](X, folder()))
    for size in (100, 10_000):
        rows, weights = opened.sample(size, np.random.default_rng(0))
        assert len(rows) == len(weights) == min(size, len(X))
        assert {tuple(row) for row in rows.tolist()} <= {tuple(row) for row in X.tolist()}
        assert len({tuple(row) for row in rows.tolist()}) == len(rows)


@pytest.mark.parametrize("source", [name for name in EVERY if name not in ONCE])
def test_samples_depend_on_the_seed_alone(source: str, folder: Folder) -> None:
    opened = open_source(EVERY[source](values(), folder()))
    one, same, other = (
        opened.sample(100, np.random.default_rng(seed))[0].tobytes() for seed in (0, 0, 1)
    )
    assert one == same
    assert one != other


# Columns


@every_table
def test_columns_are_found_by_name_in_any_order(source: str, folder: Folder) -> None:
    X = values(500)
    shuffled = (
        as_table(X)
        .select(["height", "east", "north"])
        .append_column("more", pa.array(["text"] * 500))
    )
    make = TABLES[source]
    assert sketch(make(shuffled, folder())) == sketch(X)
    assert sketch(make(shuffled, folder()), columns=list(NAMES), like=PLAIN) == sketch(X)
    assert ckm.sketch(
        make(shuffled, folder()), columns="north", sketch_size=4, random_state=0
    ).columns == ("north",)


@every_table
def test_columns_without_numbers_are_left_out_and_named(source: str, folder: Folder) -> None:
    X = values(500)
    table = (
        as_table(X)
        .add_column(1, "kind", pa.array(["a", "b"] * 250))
        .append_column("place", pa.array(["here"] * 500))
    )
    with pytest.warns(ColumnsWarning, match=r"kind \(text\), place \(text\)"):
        s = ckm.sketch(TABLES[source](table, folder()), sketch_size=10, random_state=3)
    assert s == ckm.sketch(as_table(X), sketch_size=10, random_state=3)
    with pytest.raises(DataError, match=r"Column 'kind' of .* holds text, not numbers"):
        ckm.sketch(TABLES[source](table, folder()), columns=["east", "kind"], sketch_size=10)


@every_table
def test_a_column_may_hold_the_weights(source: str, folder: Folder) -> None:
    X = values(500)
    w = np.random.default_rng(1).integers(0, 3, size=500)
    table = as_table(X).add_column(1, "times", pa.array(w))
    weighted = sketch(TABLES[source](table, folder()), weight_column="times")
    assert weighted == sketch(X, sample_weight=w)
    drawn = ckm.sketch(
        TABLES[source](table, folder()), weight_column="times", sketch_size=10, random_state=0
    )
    assert drawn == ckm.sketch(as_table(X), sample_weight=w, sketch_size=10, random_state=0)
    assert drawn.columns == NAMES


# Types


def typed(whole: np.ndarray, kind: pa.DataType) -> pa.Table:
    def column(numbers: np.ndarray) -> pa.Array:
        if pa.types.is_decimal(kind):
            return pa.array([Decimal(int(value)) / 8 for value in numbers], kind)
        eighths = numbers * 0.125 if pa.types.is_floating(kind) else numbers
        return pa.array(eighths.astype(kind.to_pandas_dtype()), kind)

    return pa.table({name: column(whole[:, i]) for i, name in enumerate(NAMES)})


KINDS = [
    pa.float16(),
    pa.float32(),
    pa.int8(),
    pa.int64(),
    pa.uint64(),
    pa.bool_(),
    pa.decimal128(12, 3),
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@every_table
def test_numbers_of_every_type_in_tables(source: str, kind: pa.DataType, folder: Folder) -> None:
    if source == "duckdb" and kind == pa.float16():
        pytest.skip("DuckDB has no such type")
    whole = np.random.default_rng(0).integers(0, 2 if kind == pa.bool_() else 100, size=(50, 3))
    scale = 0.125 if pa.types.is_decimal(kind) or pa.types.is_floating(kind) else 1.0
    assert sketch(TABLES[source](typed(whole, kind), folder())) == sketch(whole * scale)


@pytest.mark.parametrize(
    "kind",
    [np.float16, np.float32, np.int8, np.int64, np.uint64, np.bool_],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize("source", ARRAYS)
def test_numbers_of_every_type_in_arrays(source: str, kind: type, folder: Folder) -> None:
    if kind is np.float16 and source.split()[0] in {"csr", "csc", "coo", "lil"}:
        pytest.skip("SciPy's sparse matrices have no such type")
    X = (
        np.random.default_rng(0)
        .integers(0, 2 if kind is np.bool_ else 100, size=(50, 3))
        .astype(kind)
    )
    assert sketch(ARRAYS[source](X, folder())) == sketch(X.astype(np.float64))


# Missing values


@every_table
def test_missing_values_in_tables(source: str, folder: Folder) -> None:
    X = values(500)
    spoilt = X.copy()
    spoilt[[3, 400, 401]] = np.nan
    spoilt[17, 1] = np.nan
    columns = {
        name: pa.array([None if np.isnan(v) else v for v in spoilt[:, i]], pa.float64())
        for i, name in enumerate(NAMES)
    }
    table = pa.table(columns)
    for options in ({"like": LIKE}, {"sketch_size": 10, "random_state": 0}):
        with pytest.raises(
            NonFiniteError, match=r"NaN \(a missing value\); drop or fill.*nan='drop'"
        ) as caught:
            ckm.sketch(TABLES[source](table, folder()), **options)
        assert (caught.value.row, caught.value.name) == (3, "east")
    whole = np.delete(X, [3, 17, 400, 401], axis=0)
    with pytest.warns(
        MissingRowsWarning, match=r"Left out 4 of 500 rows.*the first is row 3, column 'east'"
    ):
        assert sketch(TABLES[source](table, folder()), nan="drop") == sketch(whole)
    with pytest.warns(MissingRowsWarning, match=r"Left out 4 of 500 rows"):
        drawn = ckm.sketch(
            TABLES[source](table, folder()), nan="drop", sketch_size=10, random_state=0
        )
    assert drawn == ckm.sketch(as_table(whole), sketch_size=10, random_state=0)


@pytest.mark.parametrize("source", ARRAYS)
def test_missing_values_in_arrays(source: str, folder: Folder) -> None:
    spoilt = values(500).copy()
    spoilt[[3, 400, 401]] = np.nan
    spoilt[17, 1] = np.nan
    with pytest.raises(NonFiniteError, match=r"NaN \(a missing value\)") as caught:
        sketch(ARRAYS[source](spoilt, folder()))
    assert (caught.value.row, caught.value.column) == (3, 0)
    with pytest.warns(MissingRowsWarning, match=r"Left out 4 of 500 rows"):
        assert sketch(ARRAYS[source](spoilt, folder()), nan="drop") == sketch(
            spoilt[~np.isnan(spoilt).any(axis=1)]
        )


@every_table
def test_missing_weights(source: str, folder: Folder) -> None:
    X = values(50)
    w = np.ones(50)
    table = as_table(X).append_column("times", pa.array([None, *w[1:]]))
    with pytest.raises(DataError, match=r"weight of row 0.* is missing \(NaN\)"):
        sketch(TABLES[source](table, folder()), weight_column="times")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dropped = sketch(TABLES[source](table, folder()), weight_column="times", nan="drop")
    assert [warning.category for warning in caught] == [MissingRowsWarning]
    assert dropped == sketch(X[1:], sample_weight=w[1:])
