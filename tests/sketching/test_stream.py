"""`Sketcher`: batches of rows add up to the sketch of all rows."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._sketching.stream import HEAD_ROWS
from ckm.errors import DataError, HeadWarning, MismatchError, NonFiniteError, ParameterError

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


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(ParameterError, match="The size of the sketch is not known"):
        ckm.Sketcher()
    with pytest.raises(DataError, match="call update first"):
        ckm.Sketcher(n_clusters=2).result()
    like = ckm.sketch(X, sketch_size=20, random_state=0)
    assert ckm.Sketcher(like=like).result().count == 0
