"""The paper's Gaussian mixture: unit clusters, means of variance c K^(1/n), equal weights."""

import numpy as np
import pytest
from scipy import stats

from ckm.datasets import gaussian_mixture


def test_shapes_and_types() -> None:
    mixture = gaussian_mixture(1000, 4, 3, random_state=0)
    assert mixture.rows.shape == (1000, 3)
    assert mixture.means.shape == (4, 3)
    assert set(mixture.labels.tolist()) == set(range(4))
    assert gaussian_mixture(10, 2, 2, dtype=np.float32, random_state=0).rows.dtype == np.float32
    assert gaussian_mixture(0, 2, 2, random_state=0).rows.shape == (0, 2)


def test_rows_are_unit_gaussians_around_their_means() -> None:
    # More rows than the means are added to at a time.
    mixture = gaussian_mixture(100_000, 5, 3, random_state=1)
    noise = mixture.rows - mixture.means[mixture.labels]
    for d in range(3):
        assert stats.kstest(noise[:, d], stats.norm.cdf).pvalue > 1e-4
    assert np.abs(np.cov(noise.T) - np.eye(3)).max() < 5 * np.sqrt(2 / 100_000)
    assert stats.chisquare(np.bincount(mixture.labels)).pvalue > 1e-4


@pytest.mark.parametrize(("K", "n", "separation"), [(2000, 3, 1.5), (500, 10, 4.0)])
def test_means_have_the_variance_of_the_paper(K: int, n: int, separation: float) -> None:
    means = gaussian_mixture(1, K, n, separation=separation, random_state=0).means
    expected = stats.norm(0, np.sqrt(separation * K ** (1 / n)))
    assert stats.kstest(means.ravel(), expected.cdf).pvalue > 1e-4


def test_the_same_seed_gives_the_same_data() -> None:
    a, b, c = (gaussian_mixture(100, 3, 2, random_state=seed).rows for seed in (0, 0, 1))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
