"""`Sketcher`: batches of rows add up to the sketch of all rows."""

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._core.storage import serialise
from ckm._sketching.stream import HEAD_ROWS
from ckm.errors import (
    DataError,
    HeadWarning,
    MismatchError,
    NonFiniteError,
    ParameterError,
    PhaseWarning,
)

X = np.random.default_rng(0).normal(size=(50_000, 3))


def sketcher_of(batches: Any, **options: Any) -> ckm.Sketcher:
    sketcher = ckm.Sketcher(**options)
    for batch in batches:
        sketcher.update(batch)
    return sketcher


@pytest.mark.parametrize("size", [1, 7, 5000, 20_000, 50_000])
def test_batches_give_the_sketch_of_all_rows(size: int) -> None:
    rows = X if size > 100 else X[:500]
    like = ckm.sketch(X, sketch_size=20, random_state=0)
    sketcher = sketcher_of(
        (rows[i : i + size] for i in range(0, len(rows), size)), like=like, pool=10, random_state=1
    )
    assert sketcher.count == len(rows)
    assert sketcher.result() == ckm.sketch(rows, like=like)
    assert len(sketcher.result().pool) == 10


def test_the_first_rows_determine_the_frequencies_with_a_warning() -> None:
    sketcher = ckm.Sketcher(n_clusters=4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(0, 17_000, 1000):
            sketcher.update(X[i : i + 1000])
    with pytest.warns(HeadWarning, match=r"come from the first 17,000 rows.*like="):
        sketcher.update(X[:HEAD_ROWS])
    head = ckm.sketch(X[:17_000], n_clusters=4, random_state=0)
    assert sketcher.result().frequencies == head.frequencies
    assert sketcher.result().count == 17_000 + HEAD_ROWS


def test_a_few_rows_give_no_warning_until_others_follow() -> None:
    sketcher = sketcher_of([X[:100]], n_clusters=2, random_state=0)
    assert sketcher.result() == ckm.sketch(X[:100], n_clusters=2, random_state=0)
    with pytest.warns(HeadWarning, match="first 100 rows"):
        assert sketcher.update(X[100:300]).result().count == 300


def test_later_batches_do_not_change_a_result() -> None:
    sketcher = sketcher_of([X[:HEAD_ROWS]], n_clusters=2, random_state=0)
    before = sketcher.result()
    with pytest.warns(HeadWarning):
        after = sketcher.update(X[HEAD_ROWS:]).result()
    assert (before.count, after.count) == (HEAD_ROWS, 50_000)
    assert np.array_equal((after - before).z, ckm.sketch(X[HEAD_ROWS:], like=before).z)


def test_the_memory_of_a_batch_can_be_reused() -> None:
    like = ckm.sketch(X, sketch_size=20, random_state=0)
    buffer = np.empty((100, 3))
    sketcher = ckm.Sketcher(like=like)
    for i in range(0, 1000, 100):
        buffer[:] = X[i : i + 100]
        sketcher.update(buffer)
    assert sketcher.result() == ckm.sketch(X[:1000], like=like)


def test_data_frames_weights_and_columns() -> None:
    frame = pd.DataFrame(X[:300], columns=list("abc")).assign(w=2.0)
    like = ckm.sketch(frame[["a", "b", "c"]], sketch_size=20, random_state=0)
    sketcher = sketcher_of(
        [frame[:100], frame[["w", "c", "b", "a"]][100:]], like=like, weight_column="w"
    )
    assert sketcher.result() == ckm.sketch(frame, like=like, weight_column="w")
    assert (sketcher.result().weight, sketcher.result().columns) == (600, ("a", "b", "c"))
    mixed = (
        ckm.Sketcher(like=like)
        .update(X[:10])
        .update(X[10:20], sample_weight=np.full(10, 3.0))
        .result()
    )
    assert mixed.weight == 40
    with pytest.raises(MismatchError, match="'a'"):
        sketcher.update(frame[["b", "c", "w"]])


def test_a_refused_batch_adds_nothing() -> None:
    sketcher = sketcher_of([X[:100]], n_clusters=2, random_state=0)
    spoilt = X[:50].copy()
    spoilt[7, 2] = np.nan
    with pytest.raises(NonFiniteError, match="Row 7, column 2"):
        sketcher.update(spoilt)
    with pytest.raises(DataError, match="2 columns where those before had 3"):
        sketcher.update(X[:5, :2])
    assert sketcher.count == 100
    assert sketcher_of([X[:100], spoilt], n_clusters=2, nan="drop", random_state=0).count == 149


WITH_NAN = X[:50].copy()
WITH_NAN[7, 2] = np.nan
REFUSED: dict[str, Any] = {
    "missing": WITH_NAN,
    "infinite": [[0.0, np.inf, 0.0]],
    "too large": [[1e300, 0.0, 0.0]],
    "too large later": np.vstack([X[:40], [[0.0, -1e39, 0.0]]]),
    "text": [["a", "b", "c"]],
    "narrow": X[:5, :2],
    "masked": np.ma.masked_greater(X[:5], 0),
    "failing half way": lambda: (X[:5] if i < 3 else 1 / 0 for i in range(5)),
}


@pytest.mark.parametrize("known", [True, False], ids=["like", "new frequencies"])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_batch_changes_nothing(kind: str, known: bool) -> None:
    """Whenever it comes: the rows before and after it give what they give without it."""
    options: dict[str, Any] = {"n_clusters": 2, "random_state": 0, "pool": 10}
    if known:
        options = {"like": ckm.sketch(X, n_clusters=2, random_state=0), "pool": 10}
        options["random_state"] = 0
    batches = [X[:100], X[100:17_000], X[17_000:17_100], X[17_100:34_000]]
    plain = ckm.Sketcher(**options)
    tried = ckm.Sketcher(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for batch in batches:
            plain.update(batch)
            if batch is not batches[0] or kind != "narrow":
                with pytest.raises((ckm.errors.CkmError, ZeroDivisionError)):
                    tried.update(REFUSED[kind])
            tried.update(batch)
            with pytest.raises((ckm.errors.CkmError, ZeroDivisionError)):
                tried.update(REFUSED[kind])
            assert tried.count == plain.count
    assert serialise(tried.result()) == serialise(plain.result())


def test_a_batch_whose_warning_is_an_error_is_not_counted_twice() -> None:
    distant = np.full((100, 3), 1e15)
    sketcher = sketcher_of([X[:HEAD_ROWS]], n_clusters=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HeadWarning):
            sketcher.update(X[HEAD_ROWS:])
        assert sketcher.count == HEAD_ROWS
        assert sketcher.update(X[HEAD_ROWS:]).count == 50_000
        # This batch waits, and the warning comes with the next one.
        sketcher.update(distant)
        with pytest.raises(PhaseWarning):
            sketcher.update(X[:HEAD_ROWS])
        assert sketcher.count == 50_100
        assert sketcher.update(X[:HEAD_ROWS]).count == 50_100 + HEAD_ROWS
        assert sketcher.result().count == 50_100 + HEAD_ROWS


def test_a_sketch_too_small_for_the_columns_is_refused_with_the_first_batch() -> None:
    sketcher = ckm.Sketcher(n_clusters=4, sketch_size=6, random_state=0)
    with pytest.raises(ParameterError, match="too small for 4 clusters in dimension 3"):
        sketcher.update(X[:10])
    assert sketcher.update(X[:10, :1]).count == 10
    with pytest.raises(DataError, match="2 columns where those before had 3"):
        ckm.Sketcher(like=ckm.sketch(X, sketch_size=9)).update(X[:, :2])


@pytest.mark.parametrize("size", [10, 1000, 20_000])
def test_threads_that_share_a_sketcher_lose_no_row(size: int) -> None:
    like = ckm.sketch(X, sketch_size=20, random_state=0)
    rows = X[:2000] if size == 10 else X
    batches = [rows[i : i + size] for i in range(0, len(rows), size)]
    sketcher = ckm.Sketcher(like=like, pool=10, n_jobs=1)
    seen = []

    def update(batch: Any) -> None:
        sketcher.update(batch)
        seen.append((sketcher.count, sketcher.result().count))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(update, batches * 8))
    assert sketcher.count == 8 * len(rows)
    assert sketcher.result() == ckm.merge([ckm.sketch(rows, like=like)] * 8)
    assert max(seen) == (8 * len(rows), 8 * len(rows))


def test_a_sketcher_can_be_copied_and_pickled() -> None:
    sketcher = sketcher_of([X[:100]], n_clusters=2, random_state=0)
    copies = [copy.copy(sketcher), copy.deepcopy(sketcher), pickle.loads(pickle.dumps(sketcher))]
    for other in copies:
        assert other.update(X[100:200]).count == 200
        assert sketcher.count == 100
    assert len({serialise(other.result()) for other in copies}) == 1


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="The size of the sketch is not known"):
        ckm.Sketcher()
    with pytest.raises(DataError, match="call update first"):
        ckm.Sketcher(n_clusters=2).result()
    like = ckm.sketch(X, sketch_size=20, random_state=0)
    assert ckm.Sketcher(like=like).result().count == 0
