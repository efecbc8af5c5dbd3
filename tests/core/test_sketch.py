"""A sketch is a value: adding sketches adds rows, with column names, bounds and moments."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pandas as pd
import pytest
from by_kernel import sketch_by
from hypothesis import given, settings
from hypothesis import strategies as st

import ckm
from ckm._core.drawing import draw_frequencies
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch
from ckm._core.storage import deserialise, serialise
from ckm._sources.blocks import BLOCK_ROWS
from ckm.errors import DataError, MismatchError, ParameterError

F = draw_frequencies(12, 3, origin=np.array([1.0, -2.0, 0.5]), seed=4)
NAMES = ("a", "b", "c")


def rows(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3))


def sketch_of(count: int, seed: int, weighted: bool = False) -> ckm.Sketch:
    """A sketch of `count` rows, unweighted or with whole-number weights: sums are exact in both."""
    weights = np.random.default_rng(seed).integers(1, 9, size=count) if weighted else None
    return ckm.sketch(rows(count, seed), like=F, sample_weight=weights)


sketches = st.builds(
    sketch_of, count=st.integers(0, 30), seed=st.integers(0, 10**6), weighted=st.booleans()
)
exact_sketches = st.builds(sketch_of, count=st.integers(0, 30), seed=st.integers(0, 10**6))


# A commutative monoid


@given(a=sketches, b=sketches, c=sketches)
def test_addition_is_associative_and_commutative(
    a: ckm.Sketch, b: ckm.Sketch, c: ckm.Sketch
) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert ckm.merge([a, b, c]) == ckm.merge(iter([c, a, b]))
    assert (a + b).count == a.count + b.count
    assert (a + b).weight == a.weight + b.weight


@given(a=sketches)
def test_the_empty_sketch_is_the_identity(a: ckm.Sketch) -> None:
    empty = ckm.Sketch.empty(F)
    assert empty + a == a == a + empty
    assert empty.count == 0
    assert ckm.merge([a]) == a


@given(a=exact_sketches, b=exact_sketches)
def test_subtracting_what_was_added_restores_the_sums(a: ckm.Sketch, b: ckm.Sketch) -> None:
    again = a + b - b
    assert again.tally.sums.tobytes() == a.tally.sums.tobytes()
    assert (again.count, again.weight, again.exact) == (a.count, a.weight, a.exact)
    assert again.tally.tight == (b.count == 0 or a.count == 0)


@given(a=sketches)
def test_a_sketch_less_itself_is_empty(a: ckm.Sketch) -> None:
    assert a - a == ckm.Sketch.empty(F)


def test_adding_an_empty_sketch_keeps_the_pool() -> None:
    s = ckm.sketch(rows(50, 0), like=F, pool=10, random_state=0)
    for total in (s + ckm.Sketch.empty(F), ckm.Sketch.empty(F) + s):
        assert total.pool is not None
        assert np.array_equal(total.pool.rows, s.pool.rows)


def test_equality_compares_every_part_but_the_pool() -> None:
    s = ckm.sketch(rows(20, 0), like=F)
    assert s == ckm.sketch(rows(20, 0), like=F)
    assert hash(s) == hash(ckm.sketch(rows(20, 0), like=F))
    assert s != ckm.sketch(rows(20, 1), like=F)
    assert s != s + s
    assert s != ckm.sketch(rows(20, 0), like=draw_frequencies(12, 3, seed=5))
    assert s != ckm.sketch(pd.DataFrame(rows(20, 0), columns=NAMES), like=F)
    assert s != sketch_by("numpy", rows(20, 0), F)
    assert s == ckm.sketch(rows(20, 0), like=F, pool=5, random_state=0), "pools are not compared"
    assert s != "a sketch"


@pytest.mark.parametrize(
    "through",
    [lambda s: s, lambda s: pickle.loads(pickle.dumps(s)), copy.deepcopy],
    ids=["itself", "pickle", "copy"],
)
def test_a_sketch_is_frozen(through: Callable[[ckm.Sketch], ckm.Sketch]) -> None:
    original = ckm.sketch(rows(20, 0), like=F, pool=5, random_state=0)
    s = through(original)
    assert s == original
    with pytest.raises(FrozenInstanceError):
        s.columns = NAMES  # type: ignore[misc]
    arrays = [
        s.z,
        s.mean,
        s.covariance,
        s.lower,
        s.upper,
        s.tally.sums,
        s.tally.first,
        s.tally.second,
    ]
    for array in (
        *arrays,
        s.pool.rows,
        s.pool.weights,
        s.pool.keys,
        s.frequencies.turns,
        s.frequencies.origin,
        s.frequencies.omega,
    ):
        assert not array.flags.writeable


def test_adding_something_else_is_a_type_error() -> None:
    s = sketch_of(3, 0)
    for wrong in (1, s.tally, np.zeros(3)):
        with pytest.raises(TypeError):
            s + wrong
        with pytest.raises(TypeError):
            s - wrong
        with pytest.raises(TypeError):
            wrong + s


def test_sum_adds_sketches() -> None:
    parts = [sketch_of(3, 0), sketch_of(4, 1)]
    assert sum(parts) == parts[0] + parts[1]


# Sketches that cannot be combined


def test_different_frequencies_are_refused_with_both_fingerprints() -> None:
    a = sketch_of(5, 0)
    b = ckm.sketch(rows(5, 0), like=draw_frequencies(12, 3, seed=5))
    for combine in (lambda: a + b, lambda: a - b, lambda: ckm.merge([a, b])):
        with pytest.raises(MismatchError, match=r"different frequencies.*like=") as caught:
            combine()
        assert a.frequencies.fingerprint[:8] in str(caught.value)
        assert b.frequencies.fingerprint[:8] in str(caught.value)


def test_frequencies_with_another_origin_are_different() -> None:
    moved = Frequencies(F.turns, F.origin + 1, F.scale, F.distribution)
    with pytest.raises(MismatchError, match="different frequencies"):
        sketch_of(5, 0) + ckm.sketch(rows(5, 0), like=moved)


def test_more_rows_than_there_are_cannot_be_subtracted() -> None:
    with pytest.raises(MismatchError, match=r"Cannot take 6 rows .*away from 5.*subtract only"):
        sketch_of(5, 0) - sketch_of(6, 0)


def test_more_weight_than_there_is_cannot_be_subtracted() -> None:
    light = ckm.sketch(rows(3, 0), like=F, sample_weight=[1.0, 1.0, 1.0])
    heavy = ckm.sketch(rows(2, 0), like=F, sample_weight=[5.0, 5.0])
    with pytest.raises(MismatchError, match="subtract only"):
        light - heavy


def test_merging_an_empty_list_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to merge; give at least one"):
        ckm.merge([])


@pytest.mark.parametrize("name", ["z", "mean", "covariance"])
def test_a_sketch_of_zero_rows_has_no_statistics(name: str) -> None:
    with pytest.raises(DataError, match=r"zero rows has no .*add"):
        getattr(ckm.Sketch.empty(F), name)


# Columns


def table(seed: int, order: tuple[str, ...] = NAMES) -> pd.DataFrame:
    return pd.DataFrame(rows(20, seed), columns=NAMES)[list(order)]


def test_columns_are_kept() -> None:
    named = ckm.sketch(table(0), like=F)
    plain = sketch_of(20, 1)
    assert named.columns == NAMES
    assert (named + plain).columns == (plain + named).columns == NAMES
    assert ckm.Sketch.empty(F, NAMES).columns == NAMES
    assert ckm.sketch(rows(5, 0), like=named).columns == NAMES


def test_other_columns_are_refused() -> None:
    other = ckm.Sketch.empty(F, ("a", "b", "other"))
    with pytest.raises(MismatchError, match=r"a, b, c and a, b, other.*columns="):
        ckm.sketch(table(0), like=F) + other


def test_like_reorders_and_selects_columns() -> None:
    first = ckm.sketch(table(0), like=F)
    assert ckm.sketch(table(1, ("c", "a", "b")), like=first) == ckm.sketch(table(1), like=first)
    assert ckm.sketch(table(1).assign(more=1.0), like=first) == ckm.sketch(table(1), like=first)


def test_like_requires_its_columns() -> None:
    with pytest.raises(MismatchError, match=r"no column 'c'.*x, a, b.*Give the same columns"):
        ckm.sketch(
            table(0).rename(columns={"c": "x"})[["x", "a", "b"]], like=ckm.sketch(table(0), like=F)
        )


def test_columns_selects_and_orders() -> None:
    chosen = ckm.sketch(table(0), columns=["c", "a"], sketch_size=5, random_state=0)
    assert chosen.columns == ("c", "a")
    assert np.array_equal(chosen.lower, table(0)[["c", "a"]].min().to_numpy())


# Bounds and moments


@settings(max_examples=20)
@given(
    seed=st.integers(0, 1000),
    cuts=st.lists(st.integers(0, 700), max_size=5),
    offset=st.sampled_from([0.0, 1e6]),
)
def test_mean_and_covariance_for_any_split(seed: int, cuts: list[int], offset: float) -> None:
    X = offset + rows(700, seed)
    whole = ckm.sketch(X, sketch_size=12, scale=1.0, random_state=seed)
    parts = ckm.merge(ckm.sketch(part, like=whole) for part in np.split(X, sorted(cuts)))
    exact_mean = X[0] + (X - X[0]).mean(axis=0)
    for s in (whole, parts):
        assert np.array_equal(s.lower, X.min(axis=0))
        assert np.array_equal(s.upper, X.max(axis=0))
        np.testing.assert_allclose(s.mean, exact_mean, rtol=1e-12, atol=1e-12)
        # Values near 1e6 are spaced 1e-10 apart, which limits the precision of NumPy's covariance.
        # The two sketches agree to 1e-12.
        np.testing.assert_allclose(
            s.covariance, np.cov(X.T, bias=True), rtol=0, atol=1e-12 if offset == 0 else 1e-9
        )
    np.testing.assert_allclose(parts.covariance, whole.covariance, rtol=0, atol=1e-12)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12, atol=1e-12)


def test_moments_do_not_depend_on_threads() -> None:
    X = rows(2 * BLOCK_ROWS + 99, 0)
    one, two, four = (ckm.sketch(X, like=F, n_jobs=n_jobs) for n_jobs in (1, 2, 4))
    for s in (two, four):
        assert s.mean.tobytes() == one.mean.tobytes()
        assert s.covariance.tobytes() == one.covariance.tobytes()


def test_weighted_moments() -> None:
    X = rows(50, 0)
    w = np.random.default_rng(0).uniform(0, 3, size=50)
    s = ckm.sketch(X, like=F, sample_weight=w)
    np.testing.assert_allclose(s.mean, np.average(X, axis=0, weights=w), rtol=1e-12)
    # NumPy centres before it sums, the sketch afterwards.
    np.testing.assert_allclose(s.covariance, np.cov(X.T, aweights=w, bias=True), rtol=1e-11)


@pytest.mark.parametrize(
    ("n", "m", "full"), [(3, 12, True), (3, 11, False), (1, 2, True), (1, 1, False)]
)
def test_the_full_covariance_while_it_is_small_beside_the_sketch(
    n: int, m: int, full: bool
) -> None:
    X = np.random.default_rng(0).normal(size=(50, n))
    s = ckm.sketch(X, sketch_size=m, scale=1.0, random_state=0)
    expected = np.atleast_2d(np.cov(X.T, bias=True))
    assert s.covariance.shape == ((n, n) if full else (n,))
    np.testing.assert_allclose(
        s.covariance, expected if full else np.diag(expected), rtol=1e-11, atol=1e-13
    )


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), sign=st.sampled_from([-1.0, 1.0]))
def test_data_far_from_zero_keeps_its_precision(seed: int, sign: float) -> None:
    """A million standard deviations from zero, the sketch relative to its origin agrees to 1e-6."""
    # Multiples of 2^-20, so that the translation itself is not rounded.
    X = np.round(rows(500, seed) * 2**20) / 2**20
    near = ckm.sketch(X, sketch_size=12, scale=0.1, random_state=seed)
    far = ckm.sketch(X + sign * 2.0**20, sketch_size=12, scale=0.1, random_state=seed)
    assert np.array_equal(near.frequencies.turns, far.frequencies.turns)
    np.testing.assert_allclose(far.z, near.z, rtol=0, atol=1e-6)
    np.testing.assert_allclose(far.mean - sign * 2.0**20, near.mean, rtol=0, atol=1e-9)


def test_the_size_does_not_depend_on_the_number_of_rows() -> None:
    assert sketch_of(5, 0).nbytes == 16 * 12 == sketch_of(500, 0).nbytes


def test_repr_shows_the_main_properties() -> None:
    text = repr(ckm.sketch(rows(20, 0), like=F, pool=5, random_state=0))
    for part in ("m=12", "n=3", "count=20", "exact=True", "pool=5", F.fingerprint[:8]):
        assert part in text


def test_only_rows_that_were_added_can_be_subtracted() -> None:
    a = ckm.sketch(rows(5, 0), like=F)
    for other in (ckm.sketch(rows(5, 1), like=F), ckm.sketch(rows(4, 1), like=F)):
        with pytest.raises(MismatchError, match="not all in the sketch: subtract only"):
            a - other
    light, heavy = (ckm.sketch(rows(5, 0), like=F, sample_weight=np.full(5, w)) for w in (1.0, 5.0))
    with pytest.raises(MismatchError, match="subtract only"):
        heavy - light


# Forgetting gradually


def test_scaled_multiplies_every_weight() -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    s = ckm.sketch(X, sketch_size=20, pool=50, random_state=0)
    half = s.scaled(0.5)
    weighted = ckm.sketch(X, like=s, sample_weight=np.full(300, 0.5))
    assert half.z == pytest.approx(s.z, abs=1e-12)
    assert half.tally.sums == pytest.approx(weighted.tally.sums)
    assert (half.weight, half.count, half.exact, half.tally.tight) == (150.0, 150, False, False)
    assert half.mean == pytest.approx(s.mean)
    assert half.covariance == pytest.approx(s.covariance)
    assert s.scaled(1) == s
    assert Sketch.empty(s.frequencies).scaled(0.3) == Sketch.empty(s.frequencies)
    assert half.pool.estimate().weights.sum() == pytest.approx(
        0.5 * s.pool.estimate().weights.sum()
    )
    assert deserialise(serialise(half)) == half


def test_old_rows_fade_when_sketches_are_scaled() -> None:
    rng = np.random.default_rng(0)
    first = ckm.sketch(
        rng.normal(size=(1000, 2)), n_clusters=2, scale=1.0, pool=200, random_state=0
    )
    so_far = first
    for i in range(60):
        so_far = so_far.scaled(0.8) + ckm.sketch(
            rng.normal(size=(100, 2)) + 9, like=first, pool=200, random_state=i
        )
    assert so_far.weight == pytest.approx(500, rel=0.01)
    assert 500 <= so_far.count <= 506, "rounding up adds at most 1 / (1 - factor) rows"
    assert so_far.mean == pytest.approx([9, 9], abs=0.2)
    assert (so_far.pool.rows > 4).all(), "old rows have left the pool"


@pytest.mark.parametrize("factor", [0, -0.5, 1.5, np.nan, True, "0.9", None])
def test_scaled_refuses_factors_out_of_range(factor: Any) -> None:
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        ckm.sketch(np.eye(2), sketch_size=2, scale=1.0).scaled(factor)


@pytest.mark.parametrize("parts", [["a.ckm"], ["a.ckm", "b.ckm"], [1, 2]])
def test_merging_other_things_than_sketches_is_refused(parts: list) -> None:
    with pytest.raises(ckm.errors.ParameterError, match=r"merge takes sketches; got (str|int)"):
        ckm.merge(parts)
