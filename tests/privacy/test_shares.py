"""The shares of honest parties add up to the noise that was asked for."""

from functools import reduce

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import ckm
from ckm._core.accounting import variance_for
from ckm._privacy.shares import share_variance
from ckm.errors import DataError, MismatchError, ParameterError


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


DESIGN = ckm.public_frequencies(([-4, -4], [4, 4]), sketch_size=200)


def test_parties_release_the_sketch_of_all_rows():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    shared = ckm.SharedRelease(DESIGN, 1.0, 1e-6, n_parties=3, n_missing=1)
    parts = [shared.noised(ckm.sketch(X[i::3], like=DESIGN)).view(np.uint64) for i in range(3)]
    found = shared.result(sum(parts), 3).release
    alone = ckm.release(ckm.sketch(X, like=DESIGN), 1.0, 1e-6).release
    assert found.budget == alone.budget
    assert found.variance == pytest.approx(1.5 * alone.variance, rel=1e-12)
    noise = found.sums - ckm.sketch(X, like=DESIGN).tally.sums
    assert noise.std() == pytest.approx(found.variance**0.5, rel=0.15)
    fewer = shared.result(parts[0] + parts[2], 2).release
    assert fewer.variance == pytest.approx(alone.variance, rel=1e-12)
    with pytest.raises(ParameterError, match="total is of 1 parties where 2 to 3"):
        shared.result(parts[0], 1)
    with pytest.raises(ParameterError, match="total must be 405 integers of 64 bits"):
        shared.result(parts[0][:7], 2)


def test_parties_keep_to_what_they_agreed_on():
    rows = pd.DataFrame({0: np.zeros(9), 1: np.ones(9), "user": np.arange(9) % 2})
    cap = {"user_column": "user", "max_rows_per_user": 3, "columns": ["0", "1"]}
    users = ckm.SharedRelease(DESIGN, 1.0, 1e-6, 2, unit="user", max_rows_per_user=2)
    plain = ckm.SharedRelease(DESIGN, 1.0, 1e-6, 2)
    with pytest.raises(DataError, match="agreed on 2 rows of each user, and this sketch has 3"):
        users.noised(ckm.sketch(rows, like=DESIGN, **cap))
    with pytest.raises(DataError, match="agreed on any number of rows"):
        plain.noised(ckm.sketch(rows, like=DESIGN, **cap))
    other = ckm.public_frequencies(([-4, -4], [4, 4]), sketch_size=200, seed=1)
    with pytest.raises(MismatchError, match="other frequencies"):
        plain.noised(other)
