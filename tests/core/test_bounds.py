"""Sums over rows within public bounds: whole numbers, of which no row adds more than is stated."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ckm
from ckm._core.bounds import GRID, BoundedSums, Bounds
from ckm._core.release import Steps, squared_sensitivity
from ckm._core.storage import deserialise, serialise
from ckm._privacy.releasing import exact_query
from ckm.errors import DataError, MismatchError, SketchFileError

LOWER = np.array([-2.0, 10.0])
UPPER = np.array([6.0, 11.0])
DESIGN = ckm.public_frequencies((LOWER, UPPER), sketch_size=16)
WIDE = ckm.public_frequencies((np.full(70, -1.0), np.full(70, 1e-3)), sketch_size=40)
ROWS = np.random.default_rng(0).normal([2, 10.5], [3, 0.4], size=(700, 2))


def bounded(rows, like=DESIGN, **options):
    return ckm.sketch(rows, like=like, n_jobs=1, **options).tally.bounded


# Clipping


def test_rows_beyond_the_bounds_are_moved_to_them_and_counted():
    s = ckm.sketch(ROWS, like=DESIGN)
    inside = np.clip(ROWS, LOWER, UPPER)
    assert 0 < s.tally.bounded.clipped == (inside != ROWS).any(axis=1).sum() < 700
    same = ckm.sketch(inside, like=DESIGN)
    assert s.tally.sums.tobytes() == same.tally.sums.tobytes()
    assert (s.mean == same.mean).all()
    assert same.tally.bounded.clipped == 0


def test_the_sums_are_those_of_the_rows():
    half = (UPPER - LOWER) / 2
    u = (np.clip(ROWS, LOWER, UPPER) - (LOWER + half)) / half
    s = bounded(ROWS)
    np.testing.assert_array_equal(s.first, np.rint(GRID * u).sum(axis=0))
    np.testing.assert_array_equal(s.second, np.rint(GRID * u**2).sum(axis=0))


def test_values_that_are_no_numbers_are_refused_with_their_place():
    for value in (np.nan, np.inf):
        rows = ROWS.copy()
        rows[7, 1] = value
        with pytest.raises(ckm.errors.NonFiniteError, match="ow 7"):
            ckm.sketch(rows, like=DESIGN)


# The same bits


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(0, 700))
def test_any_order_and_split_gives_the_same_bits(seed, cut):
    rows = np.random.default_rng(seed).permutation(ROWS)
    parts = [ckm.sketch(part, like=DESIGN) for part in (rows[:cut], rows[cut:])]
    assert parts[0] + parts[1] == ckm.sketch(ROWS, like=DESIGN)


def test_threads_batches_and_files_give_the_same_bits(tmp_path):
    whole = ckm.sketch(ROWS, like=DESIGN, n_jobs=1)
    assert ckm.sketch(ROWS, like=DESIGN, n_jobs=3) == whole
    stream = ckm.Sketcher(like=DESIGN)
    for batch in np.array_split(ROWS, 7):
        stream.update(batch)
    assert stream.result() == whole
    for i, part in enumerate(np.array_split(ROWS, 3)):
        np.save(tmp_path / f"{i}.npy", part)
    DESIGN.save(tmp_path / "design.ckm")
    assert ckm.sketch(str(tmp_path / "*.npy"), like=tmp_path / "design.ckm") == whole


def test_what_was_added_is_taken_away_exactly():
    a, b = (ckm.sketch(part, like=DESIGN) for part in (ROWS[:400], ROWS[400:]))
    rest = a + b - b
    assert rest.tally.bounded.identity() == a.tally.bounded.identity()
    beyond = ckm.sketch(np.tile([[-9.0, 10.5]], (9, 1)), like=DESIGN)
    with pytest.raises(MismatchError, match="were not all in the sketch"):
        ckm.sketch(np.tile([LOWER, UPPER], (9, 1)), like=DESIGN) - beyond


# What one row adds


def squared_length(design, row):
    """The squared length of what a row adds to the numbers of a release, in whole numbers."""
    s = ckm.sketch(np.atleast_2d(row), like=design, n_jobs=1)
    query = exact_query(s, s.tally.bounded)
    numbers = [*query.sums.ravel(), query.count, *query.first, *query.second]
    return sum(int(number) ** 2 for number in numbers)


value = st.floats(width=64, min_value=-1e30, max_value=1e30)


@given(st.tuples(value, value))
@example((-1e30, 1e30))
@example((5e-324, -0.0))
def test_no_row_adds_more_than_the_sensitivity(row):
    assert squared_length(DESIGN, row) <= squared_sensitivity(16, 2)


@pytest.mark.parametrize(("design", "m"), [(DESIGN, 16), (WIDE, 40)], ids=["dense", "structured"])
def test_corners_add_nearly_the_sensitivity(design, m):
    limits = design.frequencies.bounds
    n = design.frequencies.n
    corners = product(*zip(limits.lower, limits.upper, strict=True)) if n < 5 else [limits.lower]
    found = max(squared_length(design, corner) for corner in corners)
    assert 0.99 < found / squared_sensitivity(m, n) <= 1


@pytest.mark.parametrize(("m", "n"), [(1, 1), (16, 2), (1000, 10), (10_000, 784)])
def test_the_budget_is_shared_out_as_stated(m, n):
    """4 % for the count, 4 % for sums and 2 % for squares, of the squared length of the pairs."""
    steps = Steps.of(m, n)
    pairs = m * 2.0**44
    assert steps.count**2 / pairs == pytest.approx(0.04, rel=1e-3)
    assert n * GRID**2 * steps.first**2 / pairs == pytest.approx(0.04, rel=0.1)
    assert n * GRID**2 * steps.second**2 / pairs == pytest.approx(0.02, rel=0.1)
    assert squared_sensitivity(m, n) / pairs == pytest.approx(1.10, rel=0.01)


# Whose rows


def test_caps_on_rows_of_users_add_up():
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(user=np.arange(700) % 50)
    cap = {"user_column": "user", "max_rows_per_user": 3}
    a = ckm.sketch(frame, like=DESIGN, **cap)
    assert (a.count, a.tally.bounded.user_cap) == (150, 3)
    assert (a + a).tally.bounded.user_cap == 6
    assert (DESIGN + a).tally.bounded.user_cap == (a + DESIGN).tally.bounded.user_cap == 3
    assert (a + a - a).tally.bounded.user_cap == 6, "whose rows were taken away is not known"
    # Rows in the middle of the bounds add nothing to sums of columns, but they are rows.
    middle = ckm.sketch([[2.0, 10.5]] * 9, like=DESIGN)
    assert not middle.tally.bounded.first.any()
    with pytest.raises(MismatchError, match="holds a limited number of rows of each user"):
        a + middle


# Weights


def test_rows_with_weights_are_not_released():
    exact = ckm.sketch(ROWS, like=DESIGN)
    weighted = ckm.sketch(ROWS, like=DESIGN, sample_weight=np.full(700, 2.0))
    for s in (weighted, exact.scaled(0.5), exact + weighted, exact.scaled(0.5) + exact):
        with pytest.raises(DataError, match="rows of this sketch have weights"):
            ckm.release(s, 1.0, 1e-6)


# Files


def test_a_saved_sketch_loads_unchanged():
    frame = pd.DataFrame(ROWS, columns=["a", "b"]).assign(user=np.arange(700) % 50)
    capped = ckm.sketch(frame, like=DESIGN, user_column="user", max_rows_per_user=3)
    for s in (DESIGN, WIDE, ckm.sketch(ROWS, like=DESIGN), capped):
        again = deserialise(serialise(s))
        assert again == s
        assert again.tally.bounded.identity() == s.tally.bounded.identity()


def test_forged_sums_are_refused():
    s = ckm.sketch(ROWS, like=DESIGN)
    own = s.tally.bounded
    forged = {
        "too large": replace(own, first=np.array([GRID * 701, 0])),
        "too small": replace(own, first=np.array([-(2**63), 0])),
        "negative squares": replace(own, second=np.array([-1, 0])),
        "more clipped than rows": replace(own, clipped=701),
        "rows of nobody": replace(own, user_cap=0),
        "other columns": BoundedSums.empty(3),
    }
    for sums in forged.values():
        with pytest.raises(SketchFileError):
            deserialise(serialise(replace(s, tally=replace(s.tally, bounded=sums))))


def test_bounds_are_values_that_do_not_change():
    limits = Bounds(LOWER, UPPER)
    with pytest.raises(ValueError, match="read-only"):
        limits.lower[0] = 0
