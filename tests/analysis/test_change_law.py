"""What chance does to T, and the dyadic grid, each against a direct computation."""

import numpy as np
import pytest

import ckm
from ckm._analysis.change_law import ChangeLaw, find_directions, row_features
from ckm._analysis.dyadic import BUCKETS_PER_LEVEL, Bucket, compare_sides, push
from ckm._core.tally import UNIT, Tally


def tally_of(features: np.ndarray) -> Tally:
    """A tally with these features (b, 2m), one column wide."""
    sums = np.rint(features.sum(axis=0) / UNIT).astype(np.int64).reshape(2, -1)
    b = len(features)
    return Tally(sums, float(b), b, np.zeros(1), np.zeros(1), np.zeros(1), np.zeros((1, 1)))


def test_features_are_those_of_a_sketch() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 3)) + 5
    for distribution in ("multiscale", "structured"):
        s = ckm.sketch(rows, sketch_size=16, distribution=distribution, random_state=0)
        cosines, sines = row_features(s.frequencies, rows).mean(axis=0).reshape(2, -1)
        np.testing.assert_allclose(cosines - 1j * sines, s.z, atol=1e-6)


def test_traces_are_unbiased() -> None:
    rng = np.random.default_rng(0)
    deviations = np.array([3.0, 2.0, 1.0, 1.0, 0.5])
    true = [float((deviations ** (2 * k)).sum()) for k in (1, 2, 3)]
    laws = [ChangeLaw.of_rows(rng.normal(size=(40, 5)) * deviations) for _ in range(2000)]
    found = np.array([[law.first, law.second, law.third] for law in laws])
    errors = found.std(axis=0) / np.sqrt(len(laws))
    # The third is clipped to what eigenvalues allow, which moves it a little.
    assert (np.abs(found.mean(axis=0) - true) < 4 * errors + [0, 0, 0.02 * true[2]]).all()


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_tail_of_a_window_is_what_is_counted(share: float) -> None:
    """Windows of 100 rows, of features that are far from Gaussian."""
    rng = np.random.default_rng(0)

    def draw(n: int) -> np.ndarray:
        y = (rng.random(size=(n, 20)) < share) / np.sqrt(share * (1 - share))
        return np.asarray(y - share / np.sqrt(share * (1 - share)))

    law = ChangeLaw.of_rows(draw(20_000))
    before, after = 1_000_000.0, 100.0
    T = np.array([(draw(100).mean(axis=0) ** 2).sum() * 100 for _ in range(10_000)])
    for level in (0.05, 0.01, 0.001):
        expected = level * len(T)
        threshold = law.quantile(level, before, after)
        assert abs((threshold < T).sum() - expected) < 0.25 * expected + 4 * np.sqrt(expected)
        sides = np.array([before]), np.array([after])
        assert law.tail(np.array([threshold]), *sides)[0] == pytest.approx(level)


def test_dependence_between_batches_makes_the_law_wider() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4001, 5))
    counts = np.full(4000, 10.0)
    independent = ChangeLaw.of_batches(noise[1:], counts)
    smooth = ChangeLaw.of_batches(noise[1:] + noise[:-1], counts)
    assert independent.first == pytest.approx(50, rel=0.05)
    # Sums over long windows vary as those of twice the noise do, or a little more here.
    assert 4 * 50 < smooth.first < 8 * 50


def test_directions_whiten_what_varies_and_see_what_does_not() -> None:
    rng = np.random.default_rng(0)
    features = np.zeros((3000, 40))
    features[:, :4] = rng.normal(size=(3000, 4)) * [4.0, 2.0, 1.0, 0.5]
    P = find_directions(features)
    variances = (P @ features.T).var(axis=1)
    assert (variances[:4] > 0.75).all()
    assert variances[:4].max() <= 1.01
    # A difference where the reference never varied counts most.
    new = np.eye(40)[20]
    assert (P @ new) @ (P @ new) > 3 * (P @ np.eye(40)[3]) @ (P @ np.eye(40)[3])


def test_the_grid_holds_every_block_once_in_few_buckets() -> None:
    rng = np.random.default_rng(0)
    P = rng.normal(size=(3, 8))
    buckets: tuple[Bucket, ...] = ()
    blocks = []
    for t in range(1, 200):
        features = rng.uniform(-1, 1, size=(5, 8))
        blocks.append(features)
        buckets = push(buckets, tally_of(features), P)
        assert sum(bucket.count for bucket in buckets) == 5 * t
        levels = [bucket.level for bucket in buckets]
        assert levels == sorted(levels, reverse=True)
        assert len(buckets) <= BUCKETS_PER_LEVEL * (1 + np.log2(t))
        # Windows of all lengths: the next is longer by half at most.
        windows = np.cumsum([2**level for level in reversed(levels)])
        assert (windows[4:] <= 1.5 * windows[3:-1]).all()


def test_sides_are_compared_as_by_hand() -> None:
    rng = np.random.default_rng(0)
    P = rng.normal(size=(3, 8))
    past = rng.uniform(-1, 1, size=(30, 8))
    blocks = [rng.uniform(-1, 1, size=(5, 8)) for _ in range(11)]
    buckets: tuple[Bucket, ...] = ()
    for block in blocks:
        buckets = push(buckets, tally_of(block), P)
    splits = compare_sides(Bucket.of(tally_of(past), P), buckets)
    stream = np.concatenate([past, *blocks])
    for before, after, statistic in zip(*splits, strict=True):
        n = int(before)
        moved = P @ (stream[n:].mean(axis=0) - stream[:n].mean(axis=0))
        factor = before * after / (before + after)
        assert before + after == len(stream)
        assert statistic == pytest.approx(factor * moved @ moved, rel=1e-4)
