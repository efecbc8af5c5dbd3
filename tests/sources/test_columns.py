"""Columns of tables: types, names, weights, and the place of a bad value."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from every_source import (
    LIKE,
    NAMES,
    PLAIN,
    as_table,
    rows_of,
    values,
    write_csv,
    write_parquet,
)

import ckm
from ckm.errors import (
    DataError,
    NonFiniteError,
    ParameterError,
)


def test_columns_of_different_types_in_one_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    columns = {
        "east": rng.integers(0, 9, 100),
        "north": rng.normal(size=100).astype(np.float32),
        "height": rng.random(100) < 0.5,
    }
    X = np.stack([column.astype(np.float64) for column in columns.values()], axis=1)
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    for data in (
        pa.table(columns),
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pl.LazyFrame(columns),
        tmp_path / "x.parquet",
    ):
        assert ckm.sketch(data, like=LIKE) == ckm.sketch(X, like=LIKE)


def test_files_may_differ_in_precision(tmp_path: Path) -> None:
    X = values(100)
    whole = np.round(X * 10)
    for order in (1, -1):
        for i, (part, kind) in enumerate([(X, None), (whole, pa.int64())][::order]):
            pq.write_table(as_table(part, kind), tmp_path / f"{i}.parquet")
        together = ckm.sketch([tmp_path / "0.parquet", tmp_path / "1.parquet"], like=LIKE)
        assert together == ckm.sketch(np.concatenate([X, whole]), like=LIKE)


def test_nullable_pandas_columns() -> None:
    frame = pd.DataFrame(values(50).round(), columns=NAMES).convert_dtypes()
    assert {str(kind) for kind in frame.dtypes} == {"Int64"}
    assert ckm.sketch(frame, like=LIKE) == ckm.sketch(values(50).round(), like=LIKE)


def test_whole_numbers_beyond_2_to_53_are_rounded() -> None:
    """As everywhere in float64, and as the documentation says."""
    large = 2**53 + np.arange(6).reshape(2, 3)
    for data in (large, as_table(large), pd.DataFrame(large, columns=NAMES)):
        assert np.array_equal(rows_of(data).astype(np.float64), large.astype(np.float64))


def test_pandas_columns_that_are_numbers_are_not_names() -> None:
    assert ckm.sketch(pd.DataFrame(values(50)), like=PLAIN).columns is None
    assert ckm.sketch(pd.DataFrame(values(50)), like=LIKE) == ckm.sketch(values(50), like=LIKE)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_files_of_one_set_may_order_their_columns_differently(tmp_path: Path, suffix: str) -> None:
    from every_source import write_arrow

    X = values(100)
    write = {".csv": write_csv, ".parquet": write_parquet, ".arrow": write_arrow}[suffix]
    write(as_table(X[:40]), tmp_path / f"a{suffix}")
    write(as_table(X[40:]).select(["north", "height", "east"]), tmp_path / f"b{suffix}")
    assert ckm.sketch(str(tmp_path / f"*{suffix}"), like=LIKE) == ckm.sketch(X, like=LIKE)
    s = ckm.sketch(str(tmp_path / f"*{suffix}"), sketch_size=10, random_state=0)
    assert s == ckm.sketch(as_table(X), sketch_size=10, random_state=0)


def test_weights_are_not_clustered_and_must_be_weights(tmp_path: Path) -> None:
    table = as_table(values(50)).append_column("w", pa.array([1.0] * 49 + [-1.0]))
    path = write_parquet(table, tmp_path / "x.parquet")
    for data in (table, path, pl.LazyFrame(table), table.to_reader(), [table.to_pandas()]):
        with pytest.raises(
            DataError, match=r"Column 'w'.* must be finite and not negative; weight 49 is -1"
        ):
            ckm.sketch(data, weight_column="w", like=LIKE)
    with pytest.raises(
        ParameterError, match="no column 'v'; the columns are east, north, height, w"
    ):
        ckm.sketch(path, weight_column="v", like=LIKE)
    with pytest.raises(ParameterError, match="'w' holds the weights"):
        ckm.sketch(path, weight_column="w", columns=["east", "w"], sketch_size=10)
    with pytest.raises(
        ParameterError, match=r"weight_column='w' and sample_weight= are both given"
    ):
        ckm.sketch(path, weight_column="w", sample_weight=np.ones(50), like=LIKE)
    with pytest.raises(ParameterError, match=r"no column names, so none is 'w'"):
        ckm.sketch(values(50), weight_column="w", like=LIKE)
    with pytest.raises(ParameterError, match="nan must be 'error', 'drop' or 'impute'; got 'fill'"):
        ckm.sketch(values(50), nan="fill", like=LIKE)


def test_a_bad_value_is_placed_in_its_file(tmp_path: Path) -> None:
    X = values(100).copy()
    X[63, 2] = np.inf
    for suffix, write in ((".csv", write_csv), (".parquet", write_parquet)):
        write(as_table(X[:50]), tmp_path / f"a{suffix}")
        write(as_table(X[50:]), tmp_path / f"b{suffix}")
        for options in ({"like": LIKE}, {"sketch_size": 10}, {"like": LIKE, "nan": "drop"}):
            with pytest.raises(
                NonFiniteError, match=rf"Row 13, column 'height' of .*b{suffix} holds inf"
            ) as caught:
                ckm.sketch(str(tmp_path / f"*{suffix}"), **options)
            assert caught.value.file == str(tmp_path / f"b{suffix}")


def test_places_stay_right_when_rows_before_were_dropped() -> None:
    X = values(100).copy()
    X[[3, 5], 0] = np.nan
    X[63, 2] = 1e300
    with pytest.raises(NonFiniteError, match=r"Row 63, column 2 holds 1e\+300"):
        ckm.sketch(X, like=LIKE, nan="drop")
