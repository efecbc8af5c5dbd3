"""Any sequence of operations on sketches in memory, against a model: a number for each row.

There are few different rows. What each adds to the sums is computed by exact rational arithmetic
(`tests/laws/specified.py`), so that the model of a sketch is how often it contains each row.
``make soak OPERATIONS=1000000`` sets the number of operations; the seed is printed.
"""

import copy
import os
import pickle
import random
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import specified
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from possible import assert_possible_sketch

import ckm
from ckm._core.storage import deserialise, serialise
from ckm.errors import CkmError, DataError, MismatchError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

N_OPERATIONS = int(os.environ.get("CKM_SOAK_OPERATIONS", "20000"))
SEED = int(os.environ.get("CKM_SOAK_SEED", "0"))
STEPS = 60  # of a sequence

# Numbers that float32 holds, so that rows are the same in every type.
ROWS = np.array(
    [[0, 0], [1, 0], [0, 1], [-3, 2], [0.5, 0.25], [100, -7], [1e-3, 5], [0, -0.0], [2, 2], [9, 9]],
    np.float32,
).astype(np.float64)
N_KINDS_OF_ROWS = len(ROWS)
Index = st.integers(0, 2**16)
Picks = st.lists(st.integers(0, N_KINDS_OF_ROWS - 1), max_size=12)


@dataclass(frozen=True)
class Space:
    """Frequencies, and what each row adds to the sums: (rows, 2, m) integers."""

    like: ckm.Sketch
    sums: np.ndarray


def space(frequencies: ckm.Frequencies) -> Space:
    f = frequencies
    added = [specified.sums(f.turns.tolist(), [row], f.origin.tolist()) for row in ROWS.tolist()]
    return Space(ckm.Sketch.empty(f), np.array(added, np.int64))


def spaces() -> list[Space]:
    plain = ckm.draw_frequencies(3, 2, seed=1)
    moved = ckm.draw_frequencies(5, 2, seed=2, origin=[0.5, -3.0], scale=4.0)
    few = ckm.draw_frequencies(1, 2, seed=3)  # with diagonal moments
    return [space(f) for f in (plain, moved, few)]


@dataclass
class Item:
    """A sketch, and the model of it.

    `weights` (rows,) is the total weight of each row. Sums are known exactly while `is_exact`, and
    bounds while `is_tight`.
    """

    sketch: ckm.Sketch
    space: Space
    weights: np.ndarray
    is_exact: bool = True
    is_tight: bool = True


def check(item: Item) -> None:
    """The sketch is that of the model."""
    s = item.sketch
    total = float(item.weights.sum())
    assert s.frequencies == item.space.like.frequencies
    assert s.exact == item.is_exact or s.count == 0
    sums = np.tensordot(item.weights, item.space.sums, 1)
    if item.is_exact:
        assert s.count == s.weight == total
        assert np.array_equal(s.tally.sums, sums)
    else:
        assert abs(s.weight - total) <= 1e-9 * total
        assert s.count >= min(1, total)
        assert np.abs(s.tally.sums - sums).max() <= 1e-6 * 2**22 * max(total, 1e-9)
    present = ROWS[item.weights > 0]
    if not len(present) or not s.count:
        return
    lower = present.min(axis=0)
    upper = present.max(axis=0)
    if item.is_tight:
        assert np.array_equal(s.lower, lower)
        assert np.array_equal(s.upper, upper)
    assert (s.lower <= lower).all()
    assert (s.upper >= upper).all()
    mean = item.weights @ ROWS / total
    reach = np.maximum(np.abs(s.lower), np.abs(s.upper)).max() + 10
    assert np.abs(s.mean - mean).max() <= 1e-6 * reach
    centred = ROWS - mean
    variances = item.weights @ centred**2 / total
    found = np.diag(s.covariance) if s.covariance.ndim == 2 else s.covariance
    assert np.abs(found - variances).max() <= 1e-6 * reach**2


# The same rows in every kind of source.


def strided(X: np.ndarray) -> Any:
    wide = np.zeros((2 * len(X), 5))
    wide[::2, 1:4:2] = X
    return wide[::2, 1:4:2]


def reversed_twice(X: np.ndarray) -> Any:
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def in_batches(X: np.ndarray) -> Any:
    return [X[:3], X[3:3], X[3:]]


SOURCES: tuple[Callable[[np.ndarray], Any], ...] = (
    np.array,
    np.asfortranarray,
    strided,
    reversed_twice,
    lambda X: X.astype(np.float32),
    lambda X: np.asfortranarray(X.astype(np.float32)),
    lambda X: pd.DataFrame(X),
    lambda X: pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}),
    lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
    sp.csr_matrix,
    sp.csc_array,
    in_batches,
    lambda X: lambda: iter(in_batches(X)),
    lambda X: iter(in_batches(X)),
)

REFUSED: tuple[Any, ...] = (
    np.array([[1.0, np.nan]]),
    np.array([[np.inf, 1.0]]),
    np.zeros((3, 3)),
    np.zeros(3),
    np.array([["a", "b"]]),
    np.array([[1e39, 0.0]]),
    np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
    {"a": 1},
)


class Memory(RuleBasedStateMachine):
    """Sketches that are made, combined, stored and loaded in any order."""

    operations = 0

    @initialize()
    def start(self) -> None:
        self.spaces = SPACES
        self.items: list[Item] = []
        self.n_kept = 0
        for one in self.spaces:
            self.items.append(Item(one.like, one, np.zeros(N_KINDS_OF_ROWS)))

    def keep(self, item: Item, n_operations: int = 1) -> None:
        """Check a new sketch, and let later operations use it."""
        Memory.operations += n_operations
        check(item)
        if len(self.items) > 24:
            self.n_kept += 1
            del self.items[len(self.spaces) + 5 * self.n_kept % 12]
        self.items.append(item)

    def at(self, index: int) -> Item:
        return self.items[index % len(self.items)]

    def alike(self, item: Item, index: int) -> Item:
        """Another sketch with the same frequencies."""
        others = [other for other in self.items if other.space is item.space]
        return others[index % len(others)]

    @rule(picks=Picks, source=Index, which=Index, pool=st.sampled_from([0, 0, 3]))
    def sketch(self, picks: list[int], source: int, which: int, pool: int) -> None:
        one = self.spaces[which % len(self.spaces)]
        data = SOURCES[source % len(SOURCES)](ROWS[picks].reshape(-1, 2))
        s = ckm.sketch(data, like=one.like, pool=pool, random_state=which, n_jobs=1 + which % 2)
        counts = np.bincount(picks, minlength=N_KINDS_OF_ROWS).astype(float)
        self.keep(Item(s, one, counts))

    @rule(picks=Picks, which=Index, times=st.integers(0, 3))
    def sketch_weighted(self, picks: list[int], which: int, times: int) -> None:
        """Whole weights equal repetition; a row of weight zero is absent."""
        one = self.spaces[which % len(self.spaces)]
        beta = np.array([(times + i) % 4 for i in range(len(picks))], float)
        s = ckm.sketch(ROWS[picks].reshape(-1, 2), like=one.like, sample_weight=beta, n_jobs=1)
        counts = np.bincount(picks, beta, minlength=N_KINDS_OF_ROWS)
        assert np.array_equal(s.tally.sums, np.tensordot(counts, one.sums, 1))
        self.keep(Item(s, one, counts, is_exact=s.exact and s.count == 0))

    @rule(first=Index, number=Index, size=st.integers(1, 30))
    def merge(self, first: int, number: int, size: int) -> None:
        """Any parts, in any order, in a chain or in a tree."""
        order = random.Random(number)
        item = self.at(first)
        parts = [self.alike(item, order.randrange(2**16)) for _ in range(size)]
        order.shuffle(parts)
        parts = [part for part in parts if part.weights.sum() < 1e6] or [self.items[0]]
        item = parts[0]
        parts = [part for part in parts if part.space is item.space]
        sketches = [part.sketch for part in parts]
        if order.random() < 0.5:
            total = ckm.merge(sketches)
        else:
            while len(sketches) > 1:
                right = sketches.pop(order.randrange(len(sketches)))
                left = sketches.pop(order.randrange(len(sketches)))
                sketches.append(left + right)
            total = sketches[0]
        self.keep(
            Item(
                total,
                item.space,
                np.sum([part.weights for part in parts], axis=0),
                all(part.is_exact for part in parts),
                all(part.is_tight for part in parts),
            ),
            len(parts),
        )

    @rule(first=Index, second=Index)
    def add_and_subtract(self, first: int, second: int) -> None:
        """a + b - b has the sums of a; a - a is empty."""
        a = self.at(first)
        b = self.alike(a, second)
        if not (a.is_exact and b.is_exact) or a.weights.sum() + b.weights.sum() > 1e6:
            return
        back = a.sketch + b.sketch - b.sketch
        is_tight = a.is_tight and b.is_tight and b.sketch.count == 0
        self.keep(Item(back, a.space, a.weights, is_tight=is_tight), 2)
        nothing = a.sketch - a.sketch
        assert nothing == ckm.Sketch.empty(a.sketch.frequencies, a.sketch.columns)
        Memory.operations += 1

    @rule(first=Index, number=Index)
    def chain(self, first: int, number: int) -> None:
        """A hundred sums and differences: parts are added, and taken away in another order."""
        order = random.Random(number)
        item = self.at(first)
        added: list[Item] = []
        for _ in range(100):
            if added and order.random() < 0.5:
                part = added.pop(order.randrange(len(added)))
                total = item.sketch - part.sketch
                weights = item.weights - part.weights
                is_tight = item.is_tight and part.sketch.count == 0
            else:
                part = self.alike(item, order.randrange(2**16))
                if not (part.is_exact and item.is_exact) or part.weights.sum() > 1e6:
                    continue
                added.append(part)
                total = item.sketch + part.sketch
                weights = item.weights + part.weights
                is_tight = item.is_tight and part.is_tight
            item = Item(total, item.space, weights, item.is_exact, is_tight)
            check(item)
            Memory.operations += 1
        if item.weights.sum() < 1e6:
            self.keep(item, 0)

    @rule(first=Index, second=Index)
    def subtract(self, first: int, second: int) -> None:
        """Parts can be taken away; what was not added is refused, or its rest is possible."""
        a = self.at(first)
        b = self.alike(a, second)
        if not (a.is_exact and b.is_exact):
            return
        rest = a.weights - b.weights
        try:
            found = a.sketch - b.sketch
        except MismatchError:
            assert (rest < 0).any() or (a.sketch.columns or b.sketch.columns)
            Memory.operations += 1
            return
        if (rest >= 0).all():
            is_tight = a.is_tight and b.sketch.count == 0
            self.keep(Item(found, a.space, rest, is_tight=is_tight))

    @rule(first=Index, factor=st.sampled_from([1.0, 0.5, 0.25, 1e-3, 1e-250]))
    def scale(self, first: int, factor: float) -> None:
        a = self.at(first)
        s = a.sketch.scaled(factor)
        if s.count == 0:
            assert factor * a.weights.sum() < 1e-199
            Memory.operations += 1
            return
        is_same = factor == 1
        self.keep(
            Item(
                s,
                a.space,
                factor * a.weights,
                a.is_exact and is_same,
                a.is_tight and is_same,
            )
        )

    @rule(first=Index)
    def store(self, first: int) -> None:
        """Files, pickles and copies are the same sketch, and the same bytes."""
        a = self.at(first)
        data = serialise(a.sketch)
        found = deserialise(data)
        assert serialise(found) == data
        assert pickle.loads(pickle.dumps(a.sketch)) == found == copy.deepcopy(a.sketch) == a.sketch
        assert_possible_sketch(found)
        self.keep(Item(found, a.space, a.weights, a.is_exact, a.is_tight), 4)

    @rule(first=Index)
    def save(self, first: int) -> None:
        a = self.at(first)
        path = Path(FOLDER.name) / "s.ckm"
        a.sketch.save(path)
        self.keep(Item(ckm.load(path), a.space, a.weights, a.is_exact, a.is_tight), 2)

    @rule(first=Index)
    def drop_pool(self, first: int) -> None:
        a = self.at(first)
        found = a.sketch.without_pool()
        assert found.pool is None
        self.keep(Item(found, a.space, a.weights, a.is_exact, a.is_tight))

    @rule(first=Index, second=Index)
    def refuse_others(self, first: int, second: int) -> None:
        """Sketches with other frequencies cannot be combined."""
        a = self.at(first)
        b = self.at(second)
        if a.space is not b.space:
            for combine in (lambda: a.sketch + b.sketch, lambda: a.sketch - b.sketch):
                with pytest.raises(MismatchError):
                    combine()
            Memory.operations += 2

    @rule(batches=st.lists(Picks, max_size=5), which=Index, bad=Index)
    def stream(self, batches: list[list[int]], which: int, bad: int) -> None:
        """A `Sketcher`, with a batch that it refuses in between, and results on the way."""
        one = self.spaces[which % len(self.spaces)]
        sketcher = ckm.Sketcher(like=one.like, random_state=0, n_jobs=1, pool=3 * (which % 2))
        counts = np.zeros(N_KINDS_OF_ROWS)
        for i, picks in enumerate(batches):
            data = SOURCES[(which + i) % len(SOURCES)](ROWS[picks].reshape(-1, 2))
            if picks:
                sketcher.update(data)
                counts += np.bincount(picks, minlength=N_KINDS_OF_ROWS)
            with pytest.raises((CkmError, TypeError, ValueError)):
                sketcher.update(REFUSED[(bad + i) % len(REFUSED)])
            assert sketcher.count == counts.sum()
            if (which + i) % 3 == 0:
                sketcher = pickle.loads(pickle.dumps(sketcher))
                assert sketcher.result().count == counts.sum()
        self.keep(Item(sketcher.result(), one, counts), 3 * len(batches) + 1)

    @rule(batches=st.lists(Picks, min_size=2, max_size=6), which=Index)
    def stream_in_threads(self, batches: list[list[int]], which: int) -> None:
        one = self.spaces[which % len(self.spaces)]
        sketcher = ckm.Sketcher(like=one.like, random_state=0, n_jobs=1)

        def update(picks: list[int]) -> None:
            for _ in range(5):
                sketcher.update(ROWS[picks].reshape(-1, 2))

        threads = [threading.Thread(target=update, args=(picks,)) for picks in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        picks = [pick for batch in batches for pick in batch]
        counts = 5.0 * np.bincount(picks, minlength=N_KINDS_OF_ROWS)
        self.keep(Item(sketcher.result(), one, counts), 5 * len(batches))

    @rule(batches=st.lists(Picks, max_size=4), first=Index)
    def fit_partially(self, batches: list[list[int]], first: int) -> None:
        """`partial_fit` adds batches to the sketch that a model was made from."""
        a = self.at(first)
        is_too_small = a.sketch.frequencies.m < 2
        if not a.is_exact or a.sketch.count == 0 or a.sketch.columns or is_too_small:
            return
        model = ckm.CompressiveKMeans.from_sketch(a.sketch, 1, random_state=0, n_jobs=1)
        counts = a.weights.copy()
        for picks in batches:
            if not picks:
                continue
            model.partial_fit(ROWS[picks])
            counts += np.bincount(picks, minlength=N_KINDS_OF_ROWS)
            with pytest.raises((DataError, ValueError)):
                model.partial_fit(np.array([[np.nan, 0.0]]))
        self.keep(Item(model.sketch_, a.space, counts, is_tight=a.is_tight), 2 * len(batches) + 1)

    @rule(first=Index, picks=st.lists(st.integers(0, N_KINDS_OF_ROWS - 1), min_size=2, max_size=9))
    def standardize(self, first: int, picks: list[int]) -> None:
        """New frequencies in units of the columns: parts like the first add up to the whole."""
        X = ROWS[picks]
        if (X[0] == X).all():
            return
        whole = ckm.sketch(X, sketch_size=4, standardize=True, random_state=first, n_jobs=1)
        parts = [ckm.sketch(part, like=whole, n_jobs=1) for part in np.array_split(X, 3)]
        assert ckm.merge(parts) == whole
        shuffled = np.random.default_rng(first).permutation(X)
        assert ckm.sketch(shuffled, like=whole, n_jobs=1) == whole
        assert deserialise(serialise(whole)) == whole
        Memory.operations += 8


SPACES = spaces()
FOLDER = tempfile.TemporaryDirectory()


def run_machine(n_operations: int, number: int, n_sequences: int = 50) -> int:
    """Run sequences of operations, `n_sequences` from each seed, until there are enough operations;
    the number that there were.
    """
    Memory.operations = 0
    while Memory.operations < n_operations:
        seed(number)(Memory)
        try:
            run_state_machine_as_test(
                Memory,
                settings=settings(
                    max_examples=n_sequences,
                    stateful_step_count=STEPS,
                    deadline=None,
                    database=None,
                    derandomize=False,
                    phases=(Phase.explicit, Phase.generate, Phase.shrink),
                    suppress_health_check=list(HealthCheck),
                ),
            )
        except BaseException as error:
            error.add_note(f"seed {number}: CKM_SOAK_SEED={number} makes it again")
            raise
        number += 1
    return Memory.operations


@pytest.mark.parametrize("part", range(4))
def test_sequences_of_operations(part: int) -> None:
    first = SEED + 1_000_000 * part
    done = run_machine(N_OPERATIONS // 4, first)
    print(f"{done} operations from seed {first}")


@pytest.mark.sampled
def test_some_sequences_of_operations() -> None:
    run_machine(300, SEED, n_sequences=5)
