"""Of each user the first rows count, in the order in which they are read."""

from io import BytesIO

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._sources import ColumnRequest, open_rows
from ckm._sources.user_column import UserCap
from ckm.errors import DataError, MismatchError, MissingRowsWarning, NonFiniteError, ParameterError

CAP = 3
SIZE = {"sketch_size": 20, "scale": 1.0, "cells": 0, "random_state": 0}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    users = rng.integers(0, 40, 500)
    return pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"]).assign(user=users)


def first_rows(frame):
    return frame.groupby("user").head(CAP)[["a", "b"]].to_numpy()


def capped(data, **options):
    return ckm.sketch(data, user_column="user", max_rows_per_user=CAP, **SIZE | options)


def test_the_first_rows_of_each_user_count(frame):
    source = open_rows(frame, ColumnRequest(user=UserCap("user", CAP)))
    source.prefer_chunk_rows(7)
    for _ in range(2):  # every pass counts anew
        rows = np.vstack([chunk.rows for chunk in source.chunks()])
        np.testing.assert_array_equal(rows, first_rows(frame))
    assert source.n_left_out == 500 - len(rows)
    assert source.columns == ("a", "b")
    assert source.user_cap == CAP
    assert source.sample(100, np.random.default_rng(0))[0].shape == (100, 2)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "batches", "stdin"])
def test_a_sketch_of_any_table_is_that_of_the_first_rows(frame, kind, tmp_path):
    if kind == "csv":
        data = tmp_path / "rows.csv"
        frame.to_csv(data, index=False)
    elif kind == "parquet":
        data = tmp_path / "rows.parquet"
        frame.to_parquet(data, row_group_size=64)
    elif kind == "stdin":
        data = BytesIO(frame.to_csv(index=False).encode())
    else:
        data = frame if kind == "frame" else [frame[:100], frame[100:], frame[:0]]
    first = ckm.sketch(pd.DataFrame(first_rows(frame), columns=["a", "b"]), **SIZE)
    found = capped(data, like=first, sketch_size=None, scale="auto", cells="auto")
    assert found.z.tobytes() == first.z.tobytes()
    assert found.columns == ("a", "b")


def test_rows_with_missing_values_do_not_count(frame):
    gaps = frame.copy()
    gaps.loc[::5, "a"] = np.nan
    complete = gaps.dropna()
    with pytest.warns(MissingRowsWarning, match="Left out 100 of 500 rows"):
        found = capped(gaps, nan="drop")
    assert found.count == len(first_rows(complete))


def test_a_row_of_nobody_is_refused(frame, tmp_path):
    nobody = frame.astype({"user": float})
    nobody.loc[7, "user"] = np.nan
    unnamed = named(frame)
    unnamed.loc[7, "user"] = None
    unnamed.to_csv(tmp_path / "rows.csv", index=False)
    for data in (nobody, unnamed, tmp_path / "rows.csv"):
        with pytest.raises(NonFiniteError, match=r"ow 7.*column 'user'"):
            capped(data)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"max_rows_per_user": None}, ParameterError, "used together with max_rows_per_user="),
        ({"user_column": None}, ParameterError, "used together with user_column="),
        ({"max_rows_per_user": 0}, ParameterError, "must be a whole number, at least 1; got 0"),
        ({"user_column": "who"}, ParameterError, "There is no column 'who'"),
        ({"columns": ["a", "user"]}, ParameterError, "Column 'user' says whose row it is"),
        ({"weight_column": "user"}, ParameterError, "Column 'user' says whose row it is"),
        ({"checkpoint": "c.ckpt"}, ParameterError, "does not keep how many rows of each user"),
        ({"data": np.zeros((5, 2))}, ParameterError, "no column names, so none is 'user'"),
    ],
)
def test_what_is_refused(frame, change, error, message):
    arguments = {"data": frame, "user_column": "user", "max_rows_per_user": CAP} | SIZE | change
    with pytest.raises(error, match=message):
        ckm.sketch(**arguments)


def named(frame):
    return frame.assign(user=[f"user-{number}" for number in frame["user"]])


@pytest.mark.parametrize("kind", ["frame", "categories", "polars", "csv", "parquet", "batches"])
def test_users_may_have_names(frame, kind, tmp_path):
    data = named(frame)
    if kind == "categories":
        data = data.astype({"user": "category"})
    elif kind == "polars":
        data = pytest.importorskip("polars").from_pandas(data)
    elif kind == "csv":
        (tmp_path / "a.csv").write_text(data[:200].to_csv(index=False))
        (tmp_path / "b.csv").write_text(data[200:].to_csv(index=False))
        data = [tmp_path / "a.csv", tmp_path / "b.csv"]
    elif kind == "parquet":
        data.to_parquet(tmp_path / "rows.parquet", row_group_size=64)
        data = tmp_path / "rows.parquet"
    elif kind == "batches":
        data = [data[:100], data[100:]]
    assert capped(data).z.tobytes() == capped(frame).z.tobytes()


def test_a_user_has_one_counter_in_all_tables(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv", index=False)
    named(frame).to_csv(tmp_path / "b.csv", index=False)
    message = "holds text where other tables hold numbers; write users alike"
    for data in ([frame, named(frame)], [tmp_path / "a.csv", tmp_path / "b.csv"]):
        with pytest.raises(MismatchError, match=message):
            capped(data)


def test_users_that_float64_cannot_tell_apart_are_refused(frame):
    for change in (2**60, 0.5):
        with pytest.raises(DataError, match=r"whole numbers below 2\*\*53"):
            capped(frame.assign(user=frame["user"] + change))


def test_users_are_numbers_or_names(frame):
    dates = frame.assign(user=pd.Timestamp("2026-01-01"))
    with pytest.raises(DataError, match="give each user a number or a name"):
        capped(dates)


def test_workers_that_read_apart_are_refused(frame):
    dask = pytest.importorskip("dask.dataframe")
    with pytest.raises(ParameterError, match="needs one pass that counts the rows of each user"):
        capped(dask.from_pandas(frame, npartitions=2))
