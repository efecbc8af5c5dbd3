"""Bad rows and sizes: a named error says what was seen and what to do about it."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_input import fail, sketch
from by_kernel import sketch_by

import ckm
from ckm._sources.blocks import BLOCK_ROWS
from ckm.errors import (
    ClustersWarning,
    DataError,
    MismatchError,
    MissingRowsWarning,
    NonFiniteError,
    ParameterError,
    PhaseWarning,
    SmallSketchWarning,
)


@pytest.fixture
def X() -> np.ndarray:
    """Rows into which tests put bad values."""
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


def test_a_bad_value_carries_its_place(X: np.ndarray) -> None:
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


@pytest.mark.parametrize("nan", ["error", "drop", "impute"])
def test_text_in_a_data_frame_is_refused_until_columns_are_chosen(nan: str) -> None:
    frame = pd.DataFrame({"id": np.arange(40), "a": np.arange(40.0) % 7, "plan": ["x", "y"] * 20})
    frame.loc[3, "a"] = np.nan if nan != "error" else 1.0
    with pytest.raises(DataError, match="Column 'plan' of the data frame holds text"):
        ckm.CompressiveKMeans(2, nan=nan, random_state=0).fit(frame)
    chosen = ckm.CompressiveKMeans(2, nan=nan, columns=["a"], random_state=0)
    with warnings.catch_warnings(action="ignore", category=MissingRowsWarning):
        assert list(chosen.fit(frame).feature_names_in_) == ["a"]


@pytest.mark.parametrize("K", [0, -1, 2.0, 2.5, "2", None, True, np.nan, [2]])
def test_invalid_numbers_of_clusters(X: np.ndarray, s: ckm.Sketch, K: Any) -> None:
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
        ckm.sketch(X, sketch_size=20, cells=0, random_state=0),
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
def test_invalid_parameters_of_mixtures(options: dict[str, Any], seen: str) -> None:
    fail(
        ParameterError,
        seen,
        "must be",
        ckm.datasets.gaussian_mixture,
        **({"n_samples": 10} | options),
    )


def test_a_small_sketch_is_decoded_with_a_warning(X: np.ndarray) -> None:
    s = sketch(X, n_clusters=None, sketch_size=11, cells=0)
    # So few frequencies do not tell whether there are outliers, either.
    with (
        pytest.warns(ClustersWarning, match="outliers"),
        pytest.warns(
            SmallSketchWarning,
            match=r"11 frequencies; for 3 clusters in dimension 2 fewer than 2 K n = 12"
            r".*sketch_size=30",
        ),
    ):
        ckm.decode(s, 3, random_state=0)


def test_rows_outside_the_bounds_were_never_added(X: np.ndarray, s: ckm.Sketch) -> None:
    with pytest.raises(MismatchError, match="subtract only rows that were added"):
        s - ckm.sketch(X[:20] + 100, like=s)
