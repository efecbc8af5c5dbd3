"""Chains of sums, differences and scalings: every result is a sketch that some rows could have."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ckm
from ckm._core.storage import deserialise, serialise
from ckm._core.tally import MAX_EXACT_ROWS, MIN_WEIGHT, UNIT, Tally
from ckm.errors import DataError, MismatchError

FACTORS = (0.99, 0.5, 1e-3, 1e-12, 1e-100)


def assert_possible(s: ckm.Sketch) -> None:
    """The sketch has variances, can be saved, and loads unchanged."""
    assert deserialise(serialise(s)) == s
    if s.count == 0:
        assert s.without_cells() == ckm.Sketch.empty(s.frequencies)
        return
    assert s.count >= 1
    assert s.weight >= MIN_WEIGHT
    assert (s.central_moment.diagonal >= 0).all()
    assert np.isfinite(s.covariance).all()
    assert np.isfinite(s.mean).all()
    assert (np.abs(s.z) <= 1 + 1e-6).all()


def part(rng: np.random.Generator, base: ckm.Sketch, constant: float) -> ckm.Sketch:
    """A sketch of a few rows of any size and weight, whose first column is constant."""
    count = int(rng.integers(1, 30))
    X = rng.normal(size=(count, base.frequencies.n)) * 10.0 ** rng.uniform(-3, 3)
    X[:, 0] = constant
    weights = None if rng.random() < 0.5 else 10.0 ** rng.uniform(-8, 8, size=count)
    pool = 5 * int(rng.integers(2))
    return ckm.sketch(X, like=base, sample_weight=weights, pool=pool, random_state=0, n_jobs=1)


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), steps=st.lists(st.integers(0, 3), max_size=25))
def test_every_chain_gives_a_possible_sketch(seed: int, steps: list[int]) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    far = 10.0 ** rng.uniform(-3, 6)
    origin = far * rng.integers(2) * rng.normal(size=n)
    m = int(rng.integers(1, 20))
    base = ckm.Sketch.empty(ckm.draw_frequencies(m, n, origin=origin, seed=1))
    parts = [part(rng, base, far) for _ in range(4)]
    total = parts[0]
    added = [total]
    for step in steps:
        match step:
            case 0:
                added.append(parts[rng.integers(4)])
                total = total + added[-1]
            case 1 if added:
                removed = added.pop(rng.integers(len(added)))
                # Rows whose weight was rounded away cannot be subtracted.
                with suppress(MismatchError):
                    total = total - removed
            case 2:
                factor = float(rng.choice(FACTORS))
                total = total.scaled(factor)
                added = [one.scaled(factor) for one in added]
            case 3:
                total = total + total
                added = added + added
        assert_possible(total)


def test_a_small_rest_of_many_rows_has_possible_moments() -> None:
    """Rounding errors of a million rows at 1e6 are larger than the variance of the last ones."""
    rng = np.random.default_rng(0)
    few = rng.normal(size=(3, 2)) * 1e-3
    like = ckm.Sketch.empty(ckm.draw_frequencies(20, 2))
    many = ckm.sketch(1e6 + rng.normal(size=(1000, 2)), like=like)
    for _ in range(10):
        many = many + many
    rest = ckm.sketch(few, like=like) + many - many
    assert_possible(rest)
    assert rest.tally.sums.tobytes() == ckm.sketch(few, like=like).tally.sums.tobytes()


@given(seed=st.integers(0, 2**32), n=st.integers(1, 5))
def test_reconciled_moments_are_possible(seed: int, n: int) -> None:
    """Whatever rounding did to the moments, they are replaced by some that rows can have."""
    rng = np.random.default_rng(seed)
    base = ckm.Sketch.empty(ckm.draw_frequencies(40, n))
    s = ckm.sketch(rng.normal(size=(9, n)) ** 3, like=base, n_jobs=1)
    t = s.tally
    error = 10.0 ** rng.uniform(-9, 1)
    noise = rng.normal(size=(n, n)) * error
    wrong = Tally(
        t.sums.astype(np.float64),
        t.weight,
        t.count,
        t.lower,
        t.upper,
        t.first + rng.normal(size=n) * error,
        t.second + noise + noise.T,
        tight=False,
    )
    mended = ckm.Sketch(s.frequencies, wrong.with_possible_moments(s.frequencies.origin))
    assert_possible(mended)
    assert np.abs(mended.mean - s.mean).max() <= error
    right = s.tally.with_possible_moments(s.frequencies.origin)
    assert right is s.tally, "possible moments are not changed"


# Decay


def one() -> ckm.Sketch:
    X = np.random.default_rng(0).normal(size=(200, 2))
    return ckm.sketch(X, sketch_size=30, pool=7, random_state=0, n_jobs=1)


@pytest.mark.parametrize(("factor", "times"), [(0.5, 3000), (1e-300, 2), (0.9, 5000), (5e-324, 1)])
def test_a_sketch_that_decays_to_nothing_is_empty(factor: float, times: int) -> None:
    s = one()
    for _ in range(times):
        s = s.scaled(factor)
    assert_possible(s)
    assert s.count == 0
    assert len(s.pool) == 0
    with pytest.raises(DataError, match="A sketch of zero rows has no mean"):
        _ = s.mean
    assert s + one() == one()
    assert (s + one()).pool.seen == 200


def test_a_sketch_means_the_same_until_it_is_forgotten() -> None:
    before = one()
    s = before
    for _ in range(600):
        s = s.scaled(0.5)
        assert np.allclose(s.z, before.z, rtol=1e-12)
        assert np.allclose(s.covariance, before.covariance, rtol=1e-9)
    assert_possible(s)


def test_parts_of_a_scaled_sum_can_be_subtracted() -> None:
    """Though each count is rounded up."""
    like = ckm.Sketch.empty(ckm.draw_frequencies(20, 2))
    parts = [ckm.sketch(np.full((1, 2), float(i)), like=like) for i in range(4)]
    rest = ckm.merge(parts).scaled(0.1)
    for i in range(3):
        rest = rest - parts[i].scaled(0.1)
        assert_possible(rest)
        assert rest.weight == pytest.approx(0.1 * (3 - i))
    assert (rest - parts[3].scaled(0.1)).count == 0


# Capacity


def repeated(s: ckm.Sketch, doublings: int) -> ckm.Sketch:
    for _ in range(doublings):
        s = s + s
    return s


def test_exact_sums_do_not_overflow() -> None:
    """A row at the origin adds the most to every sum: 1 / UNIT."""
    like = ckm.Sketch.empty(ckm.draw_frequencies(5, 2))
    row = ckm.sketch(np.zeros((1, 2)), like=like)
    most = repeated(row, 40)
    assert most.exact
    assert (most.tally.sums[0] == 2**40 / UNIT).all()
    assert np.allclose(most.z, 1)
    assert_possible(most)
    with pytest.raises(DataError, match=r"2,199,023,255,552 rows are more than exact sums can"):
        _ = most + most
    half = most.scaled(0.5)
    rounded = repeated(half, 20)
    assert not rounded.exact
    assert np.allclose(rounded.z, 1)
    assert_possible(rounded)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_number_of_exact_rows_fits(sign: int) -> None:
    assert MAX_EXACT_ROWS > 2.19e12
    assert abs(sign * MAX_EXACT_ROWS * (int(1 / UNIT) + 1)) < 2**63


COMBINE: dict[str, Callable[[ckm.Sketch], Any]] = {
    "+": lambda s: s + s,
    "merge": lambda s: ckm.merge([s, s]),
}


@pytest.mark.parametrize("combine", COMBINE.values(), ids=COMBINE)
def test_no_sketch_counts_more_rows_than_a_file(combine: Callable[[ckm.Sketch], Any]) -> None:
    s = repeated(ckm.sketch(np.eye(2), sketch_size=5, scale=1.0, sample_weight=[1.0, 2.0]), 61)
    assert_possible(s)
    with pytest.raises(DataError, match="more than a sketch can count"):
        combine(s)


def test_rows_that_were_not_added_are_still_refused() -> None:
    s = one()
    other = ckm.sketch(np.full((200, 2), 0.1), like=s)
    with pytest.raises(MismatchError, match="These rows were not all in the sketch"):
        _ = s - other
    with pytest.raises(MismatchError, match="Cannot take 400 rows"):
        _ = s - (s + s)


def test_rows_with_wider_outer_bounds_can_be_subtracted() -> None:
    """Once rows were subtracted, bounds are outer ones: they say nothing about what is left."""
    like = ckm.Sketch.empty(ckm.draw_frequencies(20, 2))
    near = ckm.sketch(np.eye(2), like=like)
    far = ckm.sketch(np.full((1, 2), 9.0), like=like)
    again = near + far - far
    assert (near - again).count == 0
    assert near + near - again == near
