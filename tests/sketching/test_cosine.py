"""metric="cosine": sketches of rows divided by their lengths, with the laws of all sketches."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sketch_files import LEFT_OUT, forge
from sklearn.preprocessing import normalize

import ckm
from ckm._core.cells import Design
from ckm._core.sketch import Sketch
from ckm._core.storage import SKETCH, deserialise, serialise
from ckm._sketching.jobs import PilotJob, SketchJob
from ckm._sketching.options import SketchOptions
from ckm._sources import ReadSettings, open_source
from ckm._sources.adapters import UnitRows, WithoutMissing
from ckm._sources.arrays import ArraySource
from ckm._sources.base import Chunk, Place
from ckm._sources.unit_rows import unit_rows
from ckm._util.sparse import as_sparse
from ckm.errors import (
    MismatchError,
    MissingRowsWarning,
    NonFiniteError,
    ParameterError,
    SketchFileError,
)

KINDS = {"narrow": (700, 5), "wide": (700, 80)}
every_kind = pytest.mark.parametrize("kind", KINDS)


def rows_of(kind: str) -> np.ndarray:
    """Rows around five directions, of lengths from 0.01 to 100, a tenth of the numbers zero."""
    rng = np.random.default_rng(3)
    N, n = KINDS[kind]
    X = rng.normal(size=(5, n))[rng.integers(5, size=N)] + 0.1 * rng.normal(size=(N, n))
    X[rng.random((N, n)) < 0.1] = 0.0
    return X * 10.0 ** rng.uniform(-2, 2, size=(N, 1))


def sketch(X: Any, **options: Any) -> Sketch:
    return ckm.sketch(X, **({"n_clusters": 5, "metric": "cosine", "random_state": 0} | options))


def specified(X: np.ndarray) -> np.ndarray:
    """The arithmetic that `ckm._sources.unit_rows` promises, in NumPy."""
    x = X.astype(np.float64)
    s = np.zeros(len(x))
    for column in x.T:
        s += column * column
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = (x * (1 / np.sqrt(s))[:, None]).astype(np.float32)
    return np.where(s[:, None] > 0, unit, np.float32(0))


def assert_same_sums(a: Sketch, b: Sketch) -> None:
    """The same bits in all sums, whatever the metric is called."""
    for name in ("sums", "lower", "upper", "first", "second"):
        assert getattr(a.tally, name).tobytes() == getattr(b.tally, name).tobytes()
    assert (a.count, a.weight, a.exact) == (b.count, b.weight, b.exact)
    assert (a.cells is None) == (b.cells is None)
    if a.cells is not None and b.cells is not None:
        assert a.cells.identity() == b.cells.identity()


# Unit rows


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
@pytest.mark.parametrize("n", [1, 3, 80])
@pytest.mark.parametrize("count", [0, 1, 8, 21])
def test_unit_rows_follow_the_specification(dtype: Any, n: int, count: int) -> None:
    X = (10 * np.random.default_rng(n).normal(size=(count, n))).astype(dtype)
    unit = unit_rows(X)
    assert unit.dtype == np.float32
    assert unit.tobytes() == specified(X).tobytes()
    assert unit_rows(np.asfortranarray(X)).tobytes() == unit.tobytes()
    assert np.array_equal(np.asarray(unit_rows(as_sparse(X))), unit)
    np.testing.assert_allclose(unit, normalize(X.astype(float)) if count else unit, rtol=1e-6)


@pytest.mark.parametrize("size", [1e200, 1e-200, 5e-324, 1e308, 2.0**-251, 2.0**500])
def test_huge_and_tiny_rows_neither_overflow_nor_vanish(size: float) -> None:
    X = np.array([[size, 0.0], [size, size], [0.0, -size]])
    half = np.float32(np.sqrt(0.5))
    expected = np.array([[1, 0], [half, half], [0, -1]], np.float32)
    assert np.array_equal(unit_rows(X), expected)
    assert np.array_equal(np.asarray(unit_rows(as_sparse(X))), expected)


def test_other_lengths_that_are_powers_of_two_change_no_bit() -> None:
    X = rows_of("narrow")
    for exponent in (-1000, -400, -3, 7, 400, 900):
        assert unit_rows(np.ldexp(X, exponent)).tobytes() == unit_rows(X).tobytes()


def test_rows_of_zeros_stay_rows_of_zeros() -> None:
    X = np.array([[0.0, -0.0], [3.0, 4.0]])
    assert np.array_equal(unit_rows(X), np.array([[0, 0], [0.6, 0.8]], np.float32))
    assert np.array_equal(np.asarray(unit_rows(as_sparse(X))), unit_rows(X))
    assert np.array_equal(unit_rows(X), normalize(X).astype(np.float32))


def test_rows_of_zeros_are_counted_and_one_away_from_unit_rows() -> None:
    X = rows_of("narrow")
    X[::7] = 0
    s = sketch(X)
    assert s.count == len(X)
    np.testing.assert_allclose(s.mean, normalize(X).mean(axis=0), atol=1e-7)
    solution = ckm.decode(s, 5, random_state=0)
    alone = replace(solution, centroids=np.eye(5))
    assert -alone.score(np.zeros((3, 5))) == 3.0


def test_of_a_row_with_missing_values_only_these_are_left() -> None:
    X = np.array([[1e300, np.nan, 2.0], [1.0, -np.inf, np.inf]])
    expected = np.array([[0, np.nan, 0], [0, -np.inf, np.inf]], np.float32)
    np.testing.assert_array_equal(unit_rows(X), expected)


# Sketches


@every_kind
def test_a_sketch_is_that_of_unit_rows(kind: str) -> None:
    X = rows_of(kind)
    s = sketch(X)
    assert s.frequencies.metric == "cosine"
    assert (s.frequencies.projection is None) == (kind == "narrow")
    plain = replace(s.frequencies, metric="euclidean")
    like = replace(Sketch.empty(plain), cells=s.cells - s.cells)
    assert_same_sums(s, ckm.sketch(unit_rows(X), like=like))
    # The pilot is one of unit rows, too.
    other = ckm.sketch(unit_rows(X), n_clusters=5, random_state=0)
    assert other.frequencies == plain
    assert_same_sums(s, other)


@every_kind
def test_lengths_of_rows_do_not_matter(kind: str) -> None:
    X = rows_of(kind)
    lengths = 2.0 ** np.random.default_rng(0).integers(-30, 30, size=(len(X), 1))
    assert sketch(X * lengths) == sketch(X)


@every_kind
def test_sparse_rows_give_the_sketch_of_dense_ones(kind: str) -> None:
    X = rows_of(kind)
    s = sketch(X)
    assert sketch(sp.csr_array(X), like=s) == s
    assert sketch([sp.csr_array(X[:99]), sp.csr_array(X[99:])], like=s) == s


@every_kind
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_split_of_the_rows_gives_the_same_sketch(
    kind: str, n_jobs: int, tmp_path: Path
) -> None:
    X = rows_of(kind)
    s = sketch(X)
    first = sketch(X[:123], like=s)
    second = sketch(X[123:], like=s)
    assert first + second == s
    # Subtraction leaves the bounds.
    assert (s - first).tally.sums.tobytes() == second.tally.sums.tobytes()
    assert (s - first).cells.identity() == second.cells.identity()
    chunks = ReadSettings(chunk_bytes=1)
    assert ckm.sketch(ArraySource(X, settings=chunks), like=s, n_jobs=n_jobs) == s
    np.save(tmp_path / "X.npy", X)
    assert ckm.sketch(tmp_path / "X.npy", like=s, n_jobs=n_jobs) == s


@every_kind
def test_weights_are_repetitions(kind: str) -> None:
    X = rows_of(kind)
    beta = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    X[0] = np.nan
    beta[0] = 0  # a row that does not count may hold anything
    like = sketch(rows_of(kind))
    weighted = ckm.sketch(X, like=like, sample_weight=beta)
    repeated = ckm.sketch(np.repeat(X, beta.astype(int), axis=0), like=like)
    np.testing.assert_allclose(weighted.z, repeated.z, atol=1e-12)


def test_the_pool_has_unit_rows() -> None:
    X = rows_of("narrow")
    pool = sketch(X, pool=20).pool
    assert pool is not None
    known = {row.tobytes() for row in unit_rows(X)}
    assert all(row.astype(np.float32).tobytes() in known for row in pool.rows)


def test_frequencies_that_were_agreed_on_have_a_metric() -> None:
    X = rows_of("narrow")
    agreed = ckm.draw_frequencies(30, 5, scale=0.1, metric="cosine")
    s = ckm.sketch(X, like=agreed)
    plain = ckm.draw_frequencies(30, 5, scale=0.1)
    assert agreed != plain
    assert_same_sums(s, ckm.sketch(unit_rows(X), like=plain))


# Batches, partitions and interrupted passes


@every_kind
def test_batches_give_the_same_sketch(kind: str) -> None:
    X = rows_of(kind)
    s = sketch(X)
    for options in ({"like": s}, {"n_clusters": 5, "metric": "cosine", "random_state": 0}):
        sketcher = ckm.Sketcher(**options)
        for low in range(0, len(X), 150):
            sketcher.update(X[low : low + 150])
        found = sketcher.result()
        assert found.frequencies.metric == "cosine"
        assert found == ckm.sketch(X, like=found)
    assert ckm.Sketcher(like=s).update(1e200 * X).result().count == len(X)


def chunk(X: np.ndarray) -> list[Chunk]:
    return [Chunk(X, None, Place(), Place(row=len(X)))]


@every_kind
def test_workers_give_the_same_sums(kind: str) -> None:
    X = rows_of(kind)
    s = sketch(X)
    job = SketchJob(s.design)
    parts = [job.of_partition(i, iter(chunk(part))) for i, part in enumerate(np.split(X, [50]))]
    state = job.merge(parts).state
    assert Sketch(s.frequencies, state.tally, None, None, state.cells) == s


@every_kind
def test_workers_choose_frequencies_by_unit_rows(kind: str) -> None:
    X = rows_of(kind)
    cosine = SketchOptions(n_clusters=5, metric="cosine")
    summaries = []
    for options, rows in ((cosine, X), (SketchOptions(n_clusters=5), unit_rows(X))):
        job = PilotJob(options, X.shape[1], 50, seed=0)
        summaries.append(job.finish(job.of_partition(0, iter(chunk(rows)))))
    a, b = summaries
    assert (a.scale, a.variance, a.n_rows) == (b.scale, b.variance, b.n_rows)
    assert np.array_equal(a.origin, b.origin)


def test_an_interrupted_pass_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X = rows_of("narrow")
    for name, part in zip("ab", np.split(X, [300]), strict=True):
        np.save(f"{name}.npy", part)
    done = sketch("*.npy", checkpoint="s.part")
    for metric in ("euclidean", "cosine"):
        options = {"checkpoint": "s.part", "resume": True, "metric": metric}
        if metric == "cosine":
            assert sketch("*.npy", **options) == done
        else:
            with pytest.raises(ParameterError, match="was written with metric='cosine', and now"):
                sketch("*.npy", **options)


# Files


@every_kind
@pytest.mark.parametrize("options", [{}, {"cells": 0}, {"pool": 10}, {"projection": None}])
def test_a_saved_sketch_loads_unchanged(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    s = sketch(rows_of(kind), **options)
    s.save(tmp_path / "s.ckm")
    loaded = ckm.load(tmp_path / "s.ckm")
    assert loaded == s
    assert loaded.frequencies.metric == "cosine"
    assert serialise(loaded) == serialise(s)
    assert sketch(rows_of(kind), like=str(tmp_path / "s.ckm"), **options) == s


def test_only_cosine_sketches_have_a_new_form() -> None:
    X = rows_of("narrow")
    assert b'"metric"' not in serialise(ckm.sketch(X, n_clusters=5, random_state=0))
    data = serialise(sketch(X))
    assert deserialise(data).frequencies.metric == "cosine"
    assert SKETCH.version >= 4
    plain = forge(data, {"metric": LEFT_OUT})
    with pytest.raises(SketchFileError, match="have an earlier version"):
        deserialise(plain)
    with pytest.raises(SketchFileError, match="metric must be 'euclidean' or 'cosine'"):
        deserialise(forge(data, {"metric": "l1"}))
    with pytest.raises(SketchFileError):
        deserialise(forge(data, {"metric": "euclidean"}))
    with pytest.raises(SketchFileError):
        deserialise(data.replace(b"cosine", b"cosinf"))


# Errors


def test_sketches_of_different_metrics_do_not_merge() -> None:
    a = sketch(rows_of("narrow"))
    b = Sketch.empty(replace(a.frequencies, metric="euclidean"))
    with pytest.raises(MismatchError, match="metrics 'cosine' and 'euclidean'"):
        a + b
    with pytest.raises(MismatchError, match="metrics 'euclidean' and 'cosine'"):
        b - a


@pytest.mark.parametrize("metric", ["manhattan", None, 2, ["cosine"]])
@pytest.mark.parametrize("make", [ckm.sketch, lambda _, **options: ckm.Sketcher(**options)])
def test_an_unknown_metric_is_refused(metric: Any, make: Callable[..., Any]) -> None:
    with pytest.raises(ParameterError, match="metric must be 'euclidean' or 'cosine'; got"):
        make(rows_of("narrow"), n_clusters=5, metric=metric)
    with pytest.raises(ParameterError, match="metric must be 'euclidean' or 'cosine'; got"):
        ckm.draw_frequencies(3, 2, metric=metric)
    with pytest.raises(ParameterError, match="metric must be 'euclidean' or 'cosine'; got"):
        sketch(rows_of("narrow"), like=sketch(rows_of("narrow")), metric=metric)


@pytest.mark.parametrize("make", [ckm.sketch, lambda _, **options: ckm.Sketcher(**options)])
def test_standardised_columns_have_no_unit_rows(make: Callable[..., Any]) -> None:
    with pytest.raises(ParameterError, match=r"metric='cosine' divides.*leave out standardize="):
        make(rows_of("narrow"), n_clusters=5, metric="cosine", standardize=True)
    with pytest.raises(ParameterError, match=r"metric='cosine' divides.*leave out units="):
        ckm.draw_frequencies(3, 2, metric="cosine", units=np.ones(2))


def test_like_passes_its_metric_on_and_may_not_be_contradicted() -> None:
    X = rows_of("narrow")
    plain = ckm.sketch(X, n_clusters=5, random_state=0)
    with pytest.raises(ParameterError, match=r"metric='cosine' contradicts like=.*has 'euclidean'"):
        ckm.sketch(X, like=plain, metric="cosine")
    s = sketch(X)
    assert ckm.sketch(X, like=s) == s


@every_kind
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("is_early", [True, False])
def test_values_that_are_not_finite_are_named_as_they_are(
    kind: str, value: float, is_early: bool
) -> None:
    X = rows_of(kind)
    X[456, 3] = value
    options = {} if is_early else {"like": sketch(rows_of(kind))}
    with pytest.raises(NonFiniteError, match=rf"Row 456, column 3 .*{value}"):
        sketch(X, **options)
    with pytest.raises(NonFiniteError, match=rf"Row 456, column 3 .*{value}"):
        sketch(sp.csr_array(X), **options)


def test_rows_with_missing_values_are_dropped() -> None:
    X = rows_of("narrow")
    s = sketch(X)
    gaps = np.insert(X, [5, 300], np.nan, axis=0)
    with pytest.warns(MissingRowsWarning, match="Left out 2 of 702 rows"):
        assert ckm.sketch(gaps, like=s, nan="drop") == s
    source = UnitRows(WithoutMissing(open_source(gaps)))
    assert np.array_equal(np.concatenate([c.rows for c in source.chunks()]), unit_rows(X))


def test_a_design_with_another_metric_has_another_fingerprint() -> None:
    f = sketch(rows_of("narrow")).frequencies
    assert Design(f).fingerprint != Design(replace(f, metric="euclidean")).fingerprint
    assert "cosine" in repr(sketch(rows_of("narrow")))
