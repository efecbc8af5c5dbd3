"""A pool is a random sample of rows with known probabilities that merges as sketches do."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import ckm
from ckm._core.drawing import draw_frequencies
from ckm._core.pool import Pool, distinct_rows
from ckm._kernels.cpu.kernel import importance
from ckm._sources.blocks import BLOCK_ROWS

F = draw_frequencies(2, 1, seed=0)
# Seeds are fixed: a correct sampler fails a test at this level for one seed in ten thousand.
LEVEL = 1e-4


def numbered(count: int, start: int = 0) -> np.ndarray:
    """Rows whose value is their number."""
    return np.arange(start, start + count, dtype=np.float64)[:, None]


def pool_of(X: np.ndarray, capacity: int, seed: int = 0, **options: object) -> Pool:
    pool = ckm.sketch(X, like=F, pool=capacity, random_state=seed, **options).pool
    assert pool is not None
    return pool


@given(count=st.integers(0, 60), capacity=st.integers(1, 70), seed=st.integers(0, 1000))
def test_size(count: int, capacity: int, seed: int) -> None:
    pool = pool_of(numbered(count), capacity, seed)
    assert len(pool) == min(count, capacity)
    assert pool.seen == count
    assert pool.is_complete == (count <= capacity)
    assert len(np.unique(pool.rows)) == len(pool), "no row is sampled twice"
    assert np.isin(pool.rows, numbered(count)).all()
    assert np.all(np.diff(pool.keys) >= 0)


def test_there_is_no_pool_by_default() -> None:
    assert ckm.sketch(numbered(5), like=F).pool is None
    assert ckm.sketch(numbered(5), like=F, pool=3).without_pool().pool is None


def test_rows_are_equally_likely() -> None:
    counts = Counter(
        row for seed in range(400) for row in pool_of(numbered(50), 10, seed).rows[:, 0]
    )
    observed = np.array([counts[i] for i in range(50)])
    # Rows of one pool exclude each other, so that counts vary less than chi-square assumes: a small
    # p-value is still an error, and so is one near 1.
    assert stats.chisquare(observed).pvalue > LEVEL
    assert stats.chisquare(observed).pvalue < 1 - LEVEL


def test_rows_of_all_blocks_are_equally_likely() -> None:
    count = 3 * BLOCK_ROWS
    kept = np.concatenate([pool_of(numbered(count), 1000, seed).rows[:, 0] for seed in range(4)])
    assert stats.kstest(kept, stats.uniform(0, count).cdf).pvalue > LEVEL


def test_merged_pools_are_uniform_over_all_rows() -> None:
    counts: Counter[bool] = Counter()
    for seed in range(300):
        a = pool_of(numbered(30), 8, 2 * seed)
        b = pool_of(numbered(10, start=30), 8, 2 * seed + 1)
        counts.update((row < 30) for row in (a + b).rows[:, 0])
    assert (
        stats.chisquare([counts[True], counts[False]], [300 * 8 * 0.75, 300 * 8 * 0.25]).pvalue
        > LEVEL
    )


@pytest.mark.slow
def test_rows_are_sampled_by_their_weights() -> None:
    weights = np.array([1.0, 2.0, 3.0, 4.0, 0.0])
    firsts = Counter(
        pool_of(numbered(5), 1, seed, sample_weight=weights).rows[0, 0] for seed in range(1000)
    )
    assert firsts[4.0] == 0
    assert (
        stats.chisquare([firsts[float(i)] for i in range(4)], 1000 * weights[:4] / 10).pvalue
        > LEVEL
    )


@given(
    zeros=st.sets(st.integers(0, 29), max_size=29),
    capacity=st.integers(1, 40),
    seed=st.integers(0, 1000),
)
def test_rows_of_weight_zero_are_never_sampled(zeros: set[int], capacity: int, seed: int) -> None:
    weights = np.ones(30)
    weights[list(zeros)] = 0
    X = numbered(30)
    X[list(zeros)] = np.nan  # not even their values are checked
    pool = pool_of(X, capacity, seed, sample_weight=weights)
    assert len(pool) == min(capacity, 30 - len(zeros))
    assert not set(pool.rows[:, 0].tolist()) & set(map(float, zeros))
    assert pool.seen == 30 - len(zeros)


# Merging


@given(
    seed=st.integers(0, 10**6),
    shapes=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 15)), min_size=3, max_size=3),
)
def test_merging_keeps_the_smallest_keys(seed: int, shapes: list[tuple[int, int]]) -> None:
    rng = np.random.default_rng(seed)
    a, b, c = (
        Pool.draw(rng, numbered(count, 100 * i), None, capacity)
        for i, (count, capacity) in enumerate(shapes)
    )
    merged = a + b + c
    capacity = min(a.capacity, b.capacity, c.capacity)
    assert merged.capacity == capacity
    assert merged.seen == a.seen + b.seen + c.seen
    for other in (a + (c + b), c + (b + a), (b + c) + a):
        assert np.array_equal(other.keys, merged.keys)
        assert np.array_equal(other.rows, merged.rows)
    assert np.array_equal(merged.keys, np.sort(np.concatenate([a.keys, b.keys, c.keys]))[:capacity])


def test_parts_sketched_with_one_seed_do_not_keep_the_same_positions() -> None:
    """Two files sketched by the same command keep rows at unrelated positions."""
    noise = np.random.default_rng(0).normal(size=(2, 1000, 1))
    marked = [np.hstack([part, np.arange(1000.0)[:, None]]) for part in noise]
    a, b = (
        ckm.sketch(part, sketch_size=4, scale=1.0, pool=10, random_state=0).pool for part in marked
    )
    assert len(set((a + b).rows[:, 1])) == 10
    same = ckm.sketch(3 * marked[0] + 7, sketch_size=4, scale=1.0, pool=10, random_state=0).pool
    assert np.array_equal(same.rows[:, 1], 3 * a.rows[:, 1] + 7), (
        "a change of units and origin keeps the sample"
    )


def test_sketches_merge_their_pools() -> None:
    a, b = (ckm.sketch(numbered(30, 30 * i), like=F, pool=8, random_state=i) for i in range(2))
    assert np.array_equal((a + b).pool.rows, (a.pool + b.pool).rows)
    assert (a + b.without_pool()).pool is None, "a sample of some rows does not represent all"


def test_subtracting_rows_drops_the_pool() -> None:
    a, b = (ckm.sketch(numbered(30, 30 * i), like=F, pool=8, random_state=i) for i in range(2))
    assert (a + b - b).pool is None


def test_the_number_of_threads_does_not_change_the_pool() -> None:
    X = numbered(2 * BLOCK_ROWS + 7)
    one = pool_of(X, 100, n_jobs=1)
    for n_jobs in (2, 4):
        assert np.array_equal(pool_of(X, 100, n_jobs=n_jobs).rows, one.rows)


def test_the_type_of_the_rows_does_not_change_the_pool() -> None:
    X = numbered(50)
    assert np.array_equal(pool_of(X.astype(np.float32), 5).rows, pool_of(X, 5).rows)
    assert np.array_equal(pool_of(X.astype(np.int16), 5).rows, pool_of(X, 5).rows)


def test_the_same_seed_gives_the_same_pool() -> None:
    assert np.array_equal(pool_of(numbered(50), 5, 1).rows, pool_of(numbered(50), 5, 1).rows)
    assert not np.array_equal(pool_of(numbered(50), 5, 1).rows, pool_of(numbered(50), 5, 2).rows)


def test_a_pool_is_a_copy() -> None:
    X = numbered(10)
    pool = pool_of(X, 10)
    X[:] = -1
    assert set(pool.rows[:, 0]) == set(range(10))


# Distinct rows


def test_distinct_rows_sum_weights() -> None:
    rows, weights = distinct_rows(
        np.array([[2.0, 1.0], [1.0, 5.0], [2.0, 1.0]]), np.array([1.0, 2.0, 4.0])
    )
    assert rows.tolist() == [[1.0, 5.0], [2.0, 1.0]]
    assert weights.tolist() == [2.0, 5.0]


@pytest.mark.parametrize("weighted", [True, False])
def test_weights_equal_repetition_in_a_complete_pool(weighted: bool) -> None:
    times = np.array([1, 3, 2, 0, 5])
    if weighted:
        rows, weights = pool_of(numbered(5), 20, sample_weight=times).estimate()[:2]
    else:
        rows, weights = pool_of(np.repeat(numbered(5), times, axis=0), 20).estimate()[:2]
    assert rows[:, 0].tolist() == [0, 1, 2, 4]
    assert weights.tolist() == [1, 3, 2, 5]


# Estimates of sums over all rows

HEAVY = draw_frequencies(2, 1, spread=1.0, seed=0)


def heavy_tailed(count: int, seed: int = 0) -> np.ndarray:
    """Rows whose squares vary by five orders of magnitude."""
    return np.random.default_rng(seed).standard_t(2.5, size=(count, 1))


@pytest.mark.parametrize("like", [F, HEAVY], ids=["even", "by importance"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pool_estimates_sums_over_all_rows(like: ckm.Frequencies, weighted: bool) -> None:
    X = heavy_tailed(2000)
    beta = np.random.default_rng(1).uniform(0.5, 2, len(X)) if weighted else np.ones(len(X))
    options = {"sample_weight": beta} if weighted else {}
    for moment in (0, 1, 2):
        found = []
        for seed in range(200):
            pool = ckm.sketch(X, like=like, pool=100, random_state=seed, **options).pool
            rows, weights = pool.estimate()[:2]
            found.append(weights @ rows[:, 0] ** moment)
        assert stats.ttest_1samp(found, beta @ X[:, 0] ** moment).pvalue > LEVEL, f"moment {moment}"


@pytest.mark.parametrize("like", [F, HEAVY], ids=["even", "by importance"])
def test_rows_that_are_sampled_once_stand_for_those_that_are_missed(like: ckm.Frequencies) -> None:
    rng = np.random.default_rng(0)
    X = np.rint(rng.standard_exponential(3000) * 30)[:, None]
    errors = []
    for seed in range(200):
        pool = ckm.sketch(X, like=like, pool=201, random_state=seed).pool
        values, counts = np.unique(pool.rows[:-1], return_counts=True)
        missed = (~np.isin(X, values)).sum()
        assert missed > 0
        # Those that are sampled are not missed themselves.
        errors.append(pool.estimate().unseen - (counts == 1).sum() - missed)
    assert stats.ttest_1samp(errors, 0).pvalue > LEVEL


def test_pools_that_hold_each_row_often_have_missed_none() -> None:
    assert pool_of(np.repeat(numbered(4), 100, axis=0), 80).estimate().unseen == 0
    assert pool_of(numbered(5), 20).estimate().unseen == 0
    assert pool_of(numbered(60), 21).estimate().unseen == pytest.approx(60, rel=0.2)


def test_outliers_are_more_likely() -> None:
    X = np.vstack([np.random.default_rng(0).normal(size=(20_000, 1)), [[60.0]]])
    kept = [
        60.0 in ckm.sketch(X, like=HEAVY, pool=100, random_state=seed).pool.rows
        for seed in range(20)
    ]
    # The probability of each is 1 - exp(-100 / 2.09e4 * 1800) = 0.9998.
    assert sum(kept) >= 19
    kept = [
        60.0 in ckm.sketch(X, like=F, pool=100, random_state=seed).pool.rows for seed in range(20)
    ]
    # The probability of each is 0.005.
    assert sum(kept) <= 2


def test_the_effective_size_of_a_uniform_sample_is_its_size() -> None:
    # One row only marks where the pool ends.
    assert pool_of(numbered(50), 11).estimate().size == pytest.approx(10)
    rows, weights, chances, size, _ = pool_of(np.zeros((50, 1)), 11).estimate()
    assert (rows.tolist(), size) == ([[0.0]], pytest.approx(10))
    assert weights[0] * chances[0] == pytest.approx(10)
    assert HEAVY.spread == 1.0
    assert (
        ckm.sketch(heavy_tailed(2000), like=HEAVY, pool=101, random_state=0).pool.estimate().size
        < 95
    )


def test_a_single_sampled_row_represents_itself() -> None:
    estimate = pool_of(numbered(9), 1).estimate()
    assert len(estimate.rows) == 1
    assert estimate.chances.tolist() == [0.0]
    assert estimate.size == 1.0


def test_importance_is_half_uniform_and_half_by_squared_distance() -> None:
    X = np.random.default_rng(0).normal(size=(1000, 3)) + 5
    spread = float(((X - 4) ** 2).mean())
    s = importance(X, draw_frequencies(2, 3, scale=0.3, origin=np.full(3, 4.0), spread=spread))
    assert s.mean() == pytest.approx(1)
    assert s.min() > 0.5
    assert s == pytest.approx(0.5 + 0.5 * ((X - 4) ** 2).mean(axis=1) / spread)
    assert importance(X, draw_frequencies(2, 3)) is None


def test_distinct_rows_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        for count in (1, 2, 60):
            rows = rng.integers(-1, 2, size=(count, n)).astype(float)
            expected, inverse = np.unique(rows, axis=0, return_inverse=True)
            found, weights = distinct_rows(rows, np.arange(1.0, count + 1))
            assert np.array_equal(found, expected)
            assert np.array_equal(weights, np.bincount(inverse.ravel(), np.arange(1.0, count + 1)))


def test_no_rows_are_compared_as_structures(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy turns a Ctrl-C during such a comparison into a TypeError, and loading a checkpoint
    then called it invalid.
    """
    monkeypatch.setattr(np, "unique", None)
    rows = np.repeat(np.eye(3), 4, axis=0)
    pool = Pool.draw(np.random.default_rng(0), rows, None, 6)
    assert pool.estimate().size > 0
    assert Pool.draw(np.random.default_rng(0), rows, None, 60).estimate().size > 0


def test_rows_above_the_limit_of_a_full_pool_need_not_be_drawn() -> None:
    rows = np.random.default_rng(2).standard_normal((500, 3))
    full = Pool.draw(np.random.default_rng(0), rows[:300], None, 20)
    every = full + Pool.draw(np.random.default_rng(1), rows[300:], None, 20)
    few = full + Pool.draw(np.random.default_rng(1), rows[300:], None, 20, limit=full.limit)
    assert np.array_equal(few.rows, every.rows)
    assert np.array_equal(few.keys, every.keys)
    assert (few.seen, few.capacity) == (every.seen, every.capacity)
    assert Pool.draw(np.random.default_rng(0), rows[:10], None, 20).limit == np.inf
