"""Bad input to the library: a named error whose message says what was seen and what to do about it."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from by_kernel import sketch_by
from safetensors.numpy import save as save_tensors
from sketch_files import forge

import ckm
from ckm._sources.blocks import BLOCK_ROWS
from ckm.errors import (
    CkmError,
    DataError,
    InputFileError,
    MismatchError,
    MissingFileError,
    NonFiniteError,
    OutputError,
    ParameterError,
    PhaseWarning,
    SketchFileError,
    SmallSketchWarning,
)


def fail(
    error: type[CkmError],
    seen: str,
    remedy: str,
    call: Callable[..., Any],
    *args: Any,
    **options: Any,
) -> str:
    """The message of a call that must fail with exactly this class, saying what was seen and what
    to do (two fragments of it).
    """
    with pytest.raises(CkmError) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert type(caught.value) is error, message
    assert seen in message
    assert remedy in message
    assert "\n" not in message
    return message


def sketch(data: Any, **options: Any) -> ckm.Sketch:
    return ckm.sketch(data, **({"n_clusters": 2, "random_state": 0} | options))


@pytest.fixture
def X() -> np.ndarray:
    """Rows to spoil."""
    return np.random.default_rng(0).normal(size=(200, 2))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def s(X: np.ndarray) -> ckm.Sketch:
    return sketch(X)


# Values

BAD_VALUES = [
    pytest.param(np.nan, "NaN (a missing value)", "drop or fill", id="nan"),
    pytest.param(np.inf, "inf (infinity)", "drop or clip", id="infinity"),
    pytest.param(-np.inf, "-inf (infinity)", "drop or clip", id="minus infinity"),
    pytest.param(1e300, "1e+300, which overflows float32", "rescale", id="overflow"),
    pytest.param(-3.5e38, "-3.5e+38, which overflows float32", "rescale", id="just too large"),
]


@pytest.mark.parametrize(("value", "seen", "remedy"), BAD_VALUES)
@pytest.mark.parametrize("row", [0, 7, 199])
def test_values_that_are_not_finite(
    X: np.ndarray, kernel: str, row: int, value: float, seen: str, remedy: str
) -> None:
    like = sketch(X)
    X[row, 1] = value
    for options in ({}, {"like": like, "n_clusters": None}):
        message = fail(NonFiniteError, seen, remedy, sketch, X, **options)
        assert message.startswith(f"Row {row}, column 1 holds")
    message = fail(NonFiniteError, seen, remedy, sketch_by, kernel, X, like.frequencies)
    assert message.startswith(f"Row {row}, column 1 holds")


@pytest.mark.parametrize(("value", "seen", "remedy"), BAD_VALUES[:2])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_place_is_right_in_later_blocks(
    value: float, seen: str, remedy: str, n_jobs: int
) -> None:
    X = np.zeros((2 * BLOCK_ROWS + 10, 2))
    like = ckm.draw_frequencies(4, 2)
    X[BLOCK_ROWS + 300, 1] = X[BLOCK_ROWS + 300, 0] = X[-1, 0] = value
    message = fail(NonFiniteError, seen, remedy, ckm.sketch, X, like=like, n_jobs=n_jobs)
    assert message.startswith(f"Row {BLOCK_ROWS + 300}, column 0 holds")


def test_the_place_is_right_among_rows_of_weight_zero(X: np.ndarray, s: ckm.Sketch) -> None:
    X[[3, 9]] = np.nan
    weights = np.ones(200)
    weights[:9] = 0
    fail(
        NonFiniteError,
        "Row 9, column 0",
        "drop or fill",
        ckm.sketch,
        X,
        like=s,
        sample_weight=weights,
    )
    fail(NonFiniteError, "Row 9, column 0", "drop or fill", sketch, X, sample_weight=weights)
    weights[9] = 0
    assert ckm.sketch(X, like=s, sample_weight=weights).count == 190


def test_columns_are_named(X: np.ndarray, folder: Path) -> None:
    X[7, 1] = np.nan
    table = pa.table({"east": X[:, 0], "north": pa.array(X[:, 1], from_pandas=True)})
    pq.write_table(table, "x.parquet")
    table.to_pandas().to_csv("x.csv", index=False)
    for data in [
        table,
        table.to_pandas(),
        table.to_pandas().convert_dtypes(),
        pl.from_arrow(table),
    ]:
        fail(NonFiniteError, "Row 7, column 'north' holds NaN", "drop or fill", sketch, data)
    for data in ["x.parquet", "x.csv"]:
        fail(
            NonFiniteError,
            f"Row 7, column 'north' of {data} holds NaN",
            "drop or fill",
            sketch,
            data,
        )


def test_a_bad_value_knows_where_it_is(X: np.ndarray) -> None:
    X[7, 1] = np.inf
    with pytest.raises(NonFiniteError) as caught:
        sketch(X)
    again = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, again):
        assert (error.row, error.column, error.value, error.name, error.file) == (
            7,
            1,
            np.inf,
            None,
            None,
        )
        assert isinstance(error, ValueError)
    assert str(again) == str(caught.value)


def test_large_values_that_fit_once_centred(X: np.ndarray) -> None:
    assert sketch(X * 1e30 + 1e39).count == 200


def test_phases_beyond_float32_are_warned_of(X: np.ndarray, s: ckm.Sketch) -> None:
    X[0] = 1e9
    with pytest.warns(
        PhaseWarning, match=r"turns of phase.*Remove outliers, or give a larger scale="
    ):
        ckm.sketch(X, like=s)


# Shapes and types


@pytest.mark.parametrize(
    ("data", "seen", "remedy"),
    [
        (np.zeros(5), "(5,)", "X.reshape(-1, 1)"),
        (np.zeros((2, 3, 4)), "(2, 3, 4)", "X.reshape"),
        (np.float64(3), "()", "two dimensions"),
        (None, "None", "array"),
        ([], "(0,)", "two dimensions"),
        (np.zeros((5, 0)), "(5, 0)", "at least one"),
        ([[1, 2], [3]], "list", "rows of one length"),
        ([["a", "b"]], "text", "convert"),
        (np.array([[1, "x"]], object), "Python objects", "convert"),
        (np.eye(2) * 1j, "complex numbers", "convert"),
        (np.zeros((3, 2), "M8[s]"), "dates", "convert"),
        (np.zeros((3, 2), "m8[s]"), "timedelta", "convert"),
        (np.ma.masked_less(np.arange(6.0).reshape(3, 2), 2), "masked", "fill"),
        (pd.Series([1.0, 2.0]), "(2,)", "X.reshape(-1, 1)"),
        (pd.DataFrame({"b": ["x", "y"]}), "no column holds numbers (b: text)", "convert one"),
        (pl.DataFrame({"b": ["x", "y"]}), "no column holds numbers (b: text)", "convert one"),
        (pa.table({"b": ["x", "y"]}), "no column holds numbers (b: text)", "convert one"),
        (
            pd.DataFrame({"a": pd.to_datetime(["2020", "2021"])}),
            "no column holds numbers (a: dates)",
            "convert one",
        ),
        (pd.DataFrame(np.eye(2), columns=["a", "a"]), "'a'", "once"),
        (pd.DataFrame(index=range(3)), "(3, 0)", "at least one"),
        (pl.LazyFrame({"a": ["x"]}), "no column holds numbers (a: text)", "convert one"),
        ({"a": [1.0]}, "Got a dict", "a data frame"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_what_is_not_a_table_of_numbers(data: Any, seen: str, remedy: str) -> None:
    fail(DataError, seen, remedy, sketch, data)


def test_sparse_matrices(X: np.ndarray) -> None:
    from scipy.sparse import csr_array

    fail(DataError, "The sparse matrix holds complex numbers", "convert", sketch, csr_array(X * 1j))
    fail(
        ParameterError,
        "A sparse matrix has no column names",
        "leave out columns=",
        sketch,
        csr_array(X),
        columns=["a"],
    )


def test_columns_that_are_not_there(X: np.ndarray) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    fail(ParameterError, "no column 'z'", "the columns are a, b", sketch, frame, columns=["z"])
    fail(ParameterError, "named twice", "each once", sketch, frame, columns=["a", "a"])
    fail(ParameterError, "columns=[]", "at least one", sketch, frame, columns=[])
    fail(ParameterError, "no column names", "leave out columns=", sketch, X, columns=["a"])


# Numbers of rows and clusters


def test_no_rows(X: np.ndarray) -> None:
    nothing = ckm.sketch(X[:0], sketch_size=20, scale=1.0, random_state=0)
    fail(DataError, "zero rows", "add sketches of some rows", ckm.decode, nothing, 1)


def test_one_row_and_equal_rows(X: np.ndarray) -> None:
    fail(DataError, "one row", "scale=", sketch, X[:1])
    fail(DataError, "All rows are equal", "scale=", sketch, np.ones((50, 2)))
    fail(DataError, "All rows are equal", "like=", sketch, np.repeat(X[:1], 9, axis=0))
    assert ckm.decode(sketch(X[:1], scale=1.0), 1, random_state=0).centroids == pytest.approx(X[:1])


def test_fewer_rows_than_clusters(X: np.ndarray) -> None:
    fail(
        DataError,
        "3 rows (n_samples=3), too few for n_clusters=5",
        "at most 3",
        ckm.decode,
        sketch(X[:3], n_clusters=5),
        5,
    )
    fail(
        DataError,
        "1 row (n_samples=1), too few",
        "at most 1",
        ckm.decode,
        sketch(X[:1], scale=1.0),
        2,
    )


@pytest.mark.parametrize("K", [0, -1, 2.0, 2.5, "2", None, True, np.nan, [2]])
def test_impossible_numbers_of_clusters(X: np.ndarray, s: ckm.Sketch, K: Any) -> None:
    fail(
        ParameterError,
        f"got {K!r}",
        "n_clusters must be a whole number, at least 1",
        ckm.decode,
        s,
        K,
    )
    if K is not None:
        fail(
            ParameterError,
            f"got {K!r}",
            "n_clusters must be a whole number, at least 1",
            ckm.sketch,
            X,
            n_clusters=K,
        )


def test_numpy_integers_are_whole_numbers(s: ckm.Sketch) -> None:
    assert (
        len(ckm.decode(s, np.int32(2), n_init=np.uint8(1), random_state=np.int64(3)).weights) == 2
    )


def test_sizes_of_the_sketch(X: np.ndarray, s: ckm.Sketch) -> None:
    fail(ParameterError, "not known", "give n_clusters= ", ckm.sketch, X)
    fail(
        ParameterError,
        "m = 3 frequencies is too small for 4 clusters",
        "sketch_size=40",
        ckm.sketch,
        X,
        n_clusters=4,
        sketch_size=3,
    )
    fail(
        ParameterError,
        "too small for 50 clusters in dimension 2 (150 unknowns)",
        "fewer clusters",
        ckm.decode,
        s,
        50,
    )
    for size in (0, -5, 2.5, "many", True):
        fail(
            ParameterError,
            f"got {size!r}",
            "sketch_size must be a whole number, at least 1",
            ckm.sketch,
            X,
            sketch_size=size,
        )


# What does not belong together


def test_data_that_does_not_fit_like(X: np.ndarray, s: ckm.Sketch) -> None:
    named = sketch(pd.DataFrame(X, columns=["a", "b"]))
    fail(
        MismatchError,
        "3 columns where the sketch given as like= has 2",
        "same columns",
        ckm.sketch,
        np.zeros((5, 3)),
        like=s,
    )
    message = fail(
        MismatchError,
        "no column 'b'",
        "same columns",
        ckm.sketch,
        pd.DataFrame(X, columns=["a", "c"]),
        like=named,
    )
    assert "a, c" in message
    assert "a, b" in message
    fail(
        ParameterError,
        "sketch_size=7 contradicts like=",
        "leave it out",
        ckm.sketch,
        X,
        like=s,
        sketch_size=7,
    )
    fail(
        ParameterError,
        "scale=7.0 contradicts like=",
        "leave it out",
        ckm.sketch,
        X,
        like=s,
        scale=7.0,
    )
    fail(
        ParameterError,
        "distribution='gaussian' contradicts like=",
        "leave it out",
        ckm.sketch,
        X,
        like=s,
        distribution="gaussian",
    )
    fail(ParameterError, "like= takes a sketch", "got int", ckm.sketch, X, like=3)


def test_merging_different_frequencies(X: np.ndarray, s: ckm.Sketch) -> None:
    other = sketch(X, random_state=1)
    message = fail(MismatchError, "different frequencies", "like=first", ckm.merge, [s, other])
    assert s.frequencies.fingerprint[:8] in message
    assert other.frequencies.fingerprint[:8] in message


@pytest.mark.parametrize(
    ("options", "rows", "seen"),
    [
        ({"random_state": 1}, slice(None), "seeds 0 and 1"),
        ({"n_clusters": 5}, slice(None), "20 and 50 of them"),
        ({"distribution": "gaussian"}, slice(None), "multiscale and gaussian"),
        ({"standardize": True}, slice(None), "columns of one are standardised"),
        ({}, slice(100), "each was drawn for its own rows"),
        ({"columns": ["a"]}, slice(None), "columns a, b and a"),
    ],
)
def test_what_sets_sketches_apart_is_named(
    X: np.ndarray, options: dict[str, Any], rows: slice, seen: str
) -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    fail(
        MismatchError,
        seen,
        "like=first",
        ckm.merge,
        [sketch(frame), sketch(frame[rows], **options)],
    )
    assert "2 and 1 columns" in fail(
        MismatchError, "different", "like=first", ckm.merge, [sketch(X), sketch(X[:, :1])]
    )


def test_merge_takes_several(s: ckm.Sketch) -> None:
    fail(ParameterError, "got one", "ckm.merge([a, b])", ckm.merge, s)


def test_addresses_are_not_names() -> None:
    for address in ("https://example.org/a.csv", "s3://bucket/*.parquet"):
        fail(InputFileError, f"{address} is an address", "fetch it first", sketch, address)


# Arguments


@pytest.mark.parametrize(
    ("option", "value", "seen", "remedy"),
    [
        ("n_jobs", 0, "got 0", "positive number of threads"),
        ("n_jobs", -2, "got -2", "every core"),
        ("n_jobs", 1.5, "got 1.5", "positive number of threads"),
        ("n_jobs", "two", "got 'two'", "positive number of threads"),
        ("n_jobs", True, "got True", "positive number of threads"),
        ("device", "gpu", "no device 'gpu'", "choose one of 'auto'"),
        ("device", ["cpu"], "no device ['cpu']", "choose one of"),
        (
            "distribution",
            "cauchy",
            "no frequency distribution 'cauchy'",
            "choose one of 'multiscale', 'adapted-radius'",
        ),
        ("distribution", None, "no frequency distribution None", "choose one of"),
        ("scale", 0, "got 0", "positive, finite variance"),
        ("scale", -1.0, "got -1.0", "positive, finite variance"),
        ("scale", np.nan, "got nan", "positive, finite variance"),
        ("scale", np.inf, "got inf", "positive, finite variance"),
        ("scale", "wide", "got 'wide'", "positive, finite variance"),
        ("scale", True, "got True", "positive, finite variance"),
        ("scale", None, "got None", "positive, finite variance"),
        ("scale", np.ones(2), "got array([1., 1.])", "positive, finite variance"),
        ("scale", 1e-90, "float32", "rescale"),
        ("pool", -1, "got -1", "pool must be a whole number, at least 0"),
        ("pool", 2.5, "got 2.5", "pool must be a whole number, at least 0"),
        ("pool", "all", "got 'all'", "pool must be a whole number, at least 0"),
        ("pool", None, "got None", "pool must be a whole number, at least 0"),
        ("random_state", -1, "got -1", "an integer from 0"),
        ("random_state", 2**64, "got 18446744073709551616", "an integer from 0"),
        ("random_state", 1.5, "got 1.5", "an integer from 0"),
        ("random_state", "x", "got 'x'", "an integer from 0"),
    ],
)
def test_bad_arguments_of_sketch(
    X: np.ndarray, option: str, value: Any, seen: str, remedy: str
) -> None:
    fail(ParameterError, seen, remedy, sketch, X, **{option: value})


@pytest.mark.parametrize(
    ("option", "value", "seen", "remedy"),
    [
        ("decoder", "magic", "no decoder 'magic'", "choose one of 'auto', 'density', 'clompr'"),
        ("decoder", ["clompr"], "no decoder ['clompr']", "choose one of"),
        ("decoder", None, "no decoder None", "choose one of"),
        ("init", "random", "no init 'random'", "choose one of 'auto', 'range', 'sample', 'k++'"),
        ("init", None, "no init None", "choose one of"),
        ("init", np.zeros((2, 2)), "no init", "choose one of"),
        ("init", "sample", "this sketch holds none", "pool=1000"),
        ("init", "k++", "this sketch holds none", "init='range'"),
        ("n_init", 0, "got 0", "n_init must be a whole number, at least 1"),
        ("n_init", 1.5, "got 1.5", "n_init must be a whole number, at least 1"),
        ("random_state", -1, "got -1", "an integer from 0"),
        ("random_state", "x", "got 'x'", "an integer from 0"),
    ],
)
def test_bad_arguments_of_decode(
    s: ckm.Sketch, option: str, value: Any, seen: str, remedy: str
) -> None:
    fail(ParameterError, seen, remedy, ckm.decode, s, 2, **{option: value})


def test_decode_takes_a_sketch(X: np.ndarray, s: ckm.Sketch) -> None:
    fail(ParameterError, "got ndarray", "ckm.sketch", ckm.decode, X, 2)
    fail(ParameterError, "got str", "ckm.load", ckm.decode, "s.ckm", 2)
    fail(ParameterError, "got Frequencies", "ckm.sketch", ckm.decode, s.frequencies, 2)


@pytest.mark.parametrize(
    ("rows", "seen", "remedy"),
    [
        (np.zeros((5, 3)), "(5, 3)", "(p, 2)"),
        (np.zeros((0, 2)), "(0, 2)", "at least 1"),
        ([1.0, 2.0], "(2,)", "(p, 2)"),
        (3, "()", "(p, 2)"),
        ([["a", "b"]], "rows must", "numbers"),
        ([[np.nan, 1.0]], "NaN", "drop or fill"),
        ([[np.inf, 1.0]], "inf", "drop or clip"),
    ],
)
def test_bad_rows_to_start_from(s: ckm.Sketch, rows: Any, seen: str, remedy: str) -> None:
    with pytest.raises(DataError) as caught:
        ckm.decode(s, 2, init="sample", rows=rows)
    assert seen in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("weights", "seen", "remedy"),
    [
        (np.r_[np.ones(199), -1], "weight 199 is -1.0", "not negative"),
        (np.r_[1, np.nan, np.ones(198)], "weight 1 is nan", "finite"),
        (np.r_[np.ones(199), np.inf], "weight 199 is inf", "finite"),
        (np.ones(3), "(3,) for 200 rows", "one weight for each row"),
        (np.ones(201), "(201,) for 200 rows", "one weight for each row"),
        (np.ones((200, 1)), "(200, 1) for 200 rows", "one weight for each row"),
        (2.0, "() for 200 rows", "one weight for each row"),
        (["a"] * 200, "'a'", "numbers"),
        (np.full(200, 1e308), "sample_weight", "rescale"),
        (np.full(200, 1e-320), "sample_weight", "rescale"),
    ],
    ids=[
        "negative",
        "nan",
        "infinite",
        "too few",
        "too many",
        "column",
        "scalar",
        "text",
        "overflow",
        "underflow",
    ],
)
def test_bad_weights(X: np.ndarray, s: ckm.Sketch, weights: Any, seen: str, remedy: str) -> None:
    for options in ({}, {"like": s, "n_clusters": None}):
        fail(DataError, seen, remedy, sketch, X, sample_weight=weights, **options)


@pytest.mark.parametrize("count", [199, 201])
def test_weights_that_do_not_fit_a_csv(
    X: np.ndarray, folder: Path, s: ckm.Sketch, count: int
) -> None:
    """How many rows a CSV has is known only at its end."""
    pd.DataFrame(X, columns=["a", "b"]).to_csv("x.csv", index=False)
    for options in ({}, {"like": s, "n_clusters": None}, {"scale": 1.0}):
        fail(
            DataError,
            f"({count},)",
            "one weight for each row",
            sketch,
            "x.csv",
            sample_weight=np.ones(count),
            **options,
        )


# Files


def test_names_that_lead_nowhere(folder: Path) -> None:
    fail(MissingFileError, "There is no file none.npy", "check the name", sketch, "none.npy")
    fail(
        MissingFileError,
        "No file matches none-*.parquet",
        "check the name",
        sketch,
        "none-*.parquet",
    )
    fail(MissingFileError, "none.csv", "check the name", sketch, ["none.csv"])
    assert issubclass(MissingFileError, FileNotFoundError)
    fail(
        InputFileError, "is a directory without a file that can be read", ".parquet", sketch, folder
    )
    Path("empty.csv").touch()
    fail(InputFileError, "empty.csv is empty (0 bytes)", "leave it out", sketch, "empty.csv")
    Path("x.txt").write_text("1,2\n")
    fail(InputFileError, "x.txt", "must end in .npy, .csv", sketch, "x.txt")


def test_mixed_suffixes(X: np.ndarray, folder: Path) -> None:
    np.save("x.npy", X)
    pd.DataFrame(X).to_csv("x.csv", index=False)
    fail(
        ParameterError,
        "several kinds (.csv, .npy)",
        "one kind at a time",
        sketch,
        ["x.npy", "x.csv"],
    )
    fail(ParameterError, "no column names", "leave out columns=", sketch, "x.npy", columns=["a"])


def test_npy_files_that_are_none(X: np.ndarray, folder: Path) -> None:
    np.save("good.npy", X)
    good = Path("good.npy").read_bytes()
    Path("text.npy").write_text("1,2\n3,4\n")
    Path("short.npy").write_bytes(good[:-8])
    Path("stub.npy").write_bytes(good[:20])
    Path("pickle.npy").write_bytes(pickle.dumps(X))
    np.save("objects.npy", np.array([[1, "a"]], object), allow_pickle=True)
    np.savez("x.npz", X)
    Path("x.npz").rename("archive.npy")
    for name in ("text", "short", "stub", "pickle", "objects", "archive"):
        fail(InputFileError, f"Cannot read {name}.npy", "np.save", sketch, f"{name}.npy")
    np.save("flat.npy", X[:, 0])
    fail(DataError, "flat.npy has shape (200,)", "reshape", sketch, "flat.npy")
    np.save("narrow.npy", X[:, :1])
    fail(
        DataError,
        "narrow.npy has 1 columns where good.npy has 2",
        "one width",
        sketch,
        ["good.npy", "narrow.npy"],
    )


def test_csv_files_that_are_none(X: np.ndarray, folder: Path) -> None:
    Path("text.csv").write_text("a,b,name\n1,2,x\n3,4,y\n")
    fail(
        DataError,
        "Column 'name' of text.csv holds text",
        "columns=['a', 'b']",
        sketch,
        "text.csv",
        columns=["a", "name"],
    )
    Path("late.csv").write_text("a,b\n" + "1,2\n" * 300_000 + "3,oops\n")
    message = fail(InputFileError, "late.csv", "check", sketch, "late.csv", scale=1.0)
    assert "oops" in message
    Path("ragged.csv").write_text("a,b\n1,2\n3\n")
    fail(
        InputFileError,
        "Cannot read ragged.csv",
        "row 1 (line 3) has 1 fields where the first line has 2",
        sketch,
        "ragged.csv",
    )
    Path("twice.csv").write_text("a,a\n1,2\n3,5\n")
    fail(
        MismatchError,
        "twice.csv has more than one column 'a'",
        "each named once",
        sketch,
        "twice.csv",
    )
    Path("binary.csv").write_bytes(bytes(range(256)) * 8)
    fail(InputFileError, "Cannot read binary.csv", "check the file", sketch, "binary.csv")


def test_parquet_files_that_are_none(X: np.ndarray, folder: Path) -> None:
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), "good.parquet")
    good = Path("good.parquet").read_bytes()
    Path("short.parquet").write_bytes(good[:-20])
    Path("text.parquet").write_text("a,b\n1,2\n")
    Path("spoilt.parquet").write_bytes(good[:4] + b"\xff" * 40 + good[44:])
    for name in ("short", "text", "spoilt"):
        fail(
            InputFileError,
            f"Cannot read {name}.parquet",
            "check the file",
            sketch,
            f"{name}.parquet",
        )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_of_one_set_must_agree(X: np.ndarray, folder: Path, suffix: str) -> None:
    """The second file has other columns, or text where the first has numbers: it is named."""

    def write(name: str, frame: pd.DataFrame) -> str:
        (
            frame.to_csv(name, index=False)
            if suffix == ".csv"
            else frame.to_parquet(name, index=False)
        )
        return name

    first = write(f"first{suffix}", pd.DataFrame(X, columns=["a", "b"]))
    other = write(f"other{suffix}", pd.DataFrame(X, columns=["a", "c"]))
    words = write(f"words{suffix}", pd.DataFrame({"a": ["one", "two"], "b": ["1.5", "2.5"]}))
    for options in ({}, {"columns": ["a", "b"]}):
        with pytest.raises(
            (DataError, InputFileError, MismatchError), match=rf"other{suffix}.*'?b'?"
        ):
            sketch([first, other], **options)
        with pytest.raises((DataError, InputFileError), match=rf"words{suffix}"):
            sketch([first, words], **options)


def test_files_that_are_not_utf8(folder: Path) -> None:
    Path("x.csv").write_bytes("größe,b\n1,2\n3,5\n".encode("latin-1"))
    fail(InputFileError, "Cannot read x.csv", "utf-8", sketch, "x.csv")


# Sketch files


def test_sketch_files_that_are_none(folder: Path, s: ckm.Sketch, X: np.ndarray) -> None:
    s.save("good.ckm")
    good = Path("good.ckm").read_bytes()
    files = {
        "truncated": (good[: len(good) // 2], "truncated"),
        "cut": (good[:-3], "is damaged"),
        "altered": (good[:-1] + bytes([good[-1] ^ 1]), "checksum"),
        "foreign": (save_tensors({"x": np.zeros(3)}), "safetensors file, but not a sketch"),
        "pickle": (pickle.dumps(X), "is not a sketch"),
        "csv": (b"a,b\n1,2\n3,4\n5,6\n", "is not a sketch"),
        "empty": (b"", "is empty"),
    }
    for name, (data, seen) in files.items():
        Path(f"{name}.ckm").write_bytes(data)
        message = fail(
            SketchFileError,
            seen,
            "make it again with ckm.sketch(...).save",
            ckm.load,
            f"{name}.ckm",
        )
        assert message.startswith(f"{name}.ckm ")
        assert (
            fail(SketchFileError, seen, "make it again", ckm.sketch, X, like=f"{name}.ckm")
            == message
        )
    Path("future.ckm").write_bytes(forge(good, {"version": 99}))
    fail(
        SketchFileError,
        "file format 99",
        "pip install -U compressive-kmeans",
        ckm.load,
        "future.ckm",
    )
    fail(MissingFileError, "There is no file none.ckm", "check the name", ckm.load, "none.ckm")
    fail(SketchFileError, "is a directory", "file", ckm.load, folder)


def test_outputs_that_cannot_be_written(folder: Path, s: ckm.Sketch) -> None:
    fail(OutputError, "is a directory", "name a file in it", s.save, folder)
    fail(OutputError, "folder none does not exist", "make it first", s.save, "none/s.ckm")
    fail(OutputError, "No such file", "choose another output", s.save, "/proc/s.ckm")


# Data sets


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ({"n_samples": -1}, "got -1"),
        ({"n_clusters": 0}, "got 0"),
        ({"n_features": 0}, "got 0"),
        ({"separation": -1.0}, "got -1.0"),
        ({"random_state": "x"}, "got 'x'"),
    ],
)
def test_impossible_mixtures(options: dict[str, Any], seen: str) -> None:
    fail(
        ParameterError,
        seen,
        "must be",
        ckm.datasets.gaussian_mixture,
        **({"n_samples": 10} | options),
    )


def test_a_small_sketch_is_decoded_with_a_warning(X: np.ndarray) -> None:
    s = sketch(X, n_clusters=None, sketch_size=11)
    with pytest.warns(
        SmallSketchWarning,
        match=r"11 frequencies; for 3 clusters in dimension 2 fewer than 2 K n = 12.*sketch_size=30",
    ):
        ckm.decode(s, 3, random_state=0)


def test_rows_outside_the_bounds_were_never_added(X: np.ndarray, s: ckm.Sketch) -> None:
    with pytest.raises(MismatchError, match="subtract only rows that were added"):
        s - ckm.sketch(X[:20] + 100, like=s)
