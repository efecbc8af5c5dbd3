"""Bad arguments and weights: a named error says what was seen and what to do about it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bad_input import fail, sketch

import ckm
from ckm.errors import (
    DataError,
    MismatchError,
    ParameterError,
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
        ("init", "rows", "no init 'rows'", "choose one of 'auto', 'range', 'sample', 'k++'"),
        ("init", None, "no init None", "choose one of"),
        ("init", np.zeros((3, 2)), "(3, 2)", "give one centroid for each"),
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
        ({"metric": "cosine"}, slice(None), "metrics 'euclidean' and 'cosine'"),
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
