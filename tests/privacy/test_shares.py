"""The shares of honest parties add up to the noise that was asked for."""

from functools import reduce

import numpy as np
import pytest
from scipy.special import logsumexp

from ckm._core.accounting import variance_for
from ckm._privacy.shares import share_variance
from ckm.errors import ParameterError


@pytest.mark.parametrize(("n_parties", "n_missing"), [(1, 0), (5, 0), (5, 2), (1000, 400)])
def test_any_honest_parties_that_stay_have_the_whole_noise(n_parties, n_missing):
    squared = 1000 * 2**44
    share = share_variance(0.02, squared, 2000, n_parties, n_missing)
    whole = variance_for(0.02, squared)
    assert whole <= (n_parties - n_missing) * share <= whole * (1 + 1e-12)


def test_the_sum_of_shares_keeps_the_divergence_that_was_asked_for():
    """By convolution of the exact laws: D_alpha <= rho alpha for the sum of four honest shares."""
    rho = 0.06
    delta = 7
    variance = share_variance(rho, delta**2, 1, n_parties=6, n_missing=2)
    x = np.arange(-300, 301)
    law = np.exp(-(x**2) / (2 * variance))
    total = reduce(np.convolve, [law / law.sum()] * 4)
    middle = np.arange(len(total) // 2 - 300, len(total) // 2 + 300)
    here = np.log(total[middle])
    there = np.log(total[middle - delta])
    for alpha in (1.01, 2, 10):
        seen = logsumexp(alpha * here + (1 - alpha) * there) / (alpha - 1)
        assert seen <= rho * alpha * (1 + 1e-6)
    assert seen >= 0.99 * rho * alpha


def test_someone_honest_must_stay():
    with pytest.raises(ParameterError, match="n_missing=3 of 3 parties leaves none"):
        share_variance(0.5, 100, 10, 3, 3)
    with pytest.raises(ParameterError, match="too small to be shared"):
        share_variance(1e-300, 100, 10**300, 3)
