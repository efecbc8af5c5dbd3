"""The sampler of discrete Gaussian noise has exactly its law, and no float decides."""

import ast
import inspect
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from ckm._privacy import discrete_gaussian as module
from ckm._privacy.discrete_gaussian import discrete_gaussian
from ckm.errors import ParameterError

VARIANCES = {
    "sigma = 1/2": Fraction(1, 4),
    "sigma = 3": 9,
    "sigma = 40": Fraction(16001, 10),
    "sums of a sketch": 1000 * int(4.53 * 2**22) ** 2,
}


def p_value(draws, variance, bins=60):
    """The chi-square test of draws against N_Z(0, variance), in bins of at least 20 expected."""
    sigma = float(variance) ** 0.5
    if sigma < 1000:
        reach = int(12 * sigma) + 2
        x = np.arange(-reach, reach + 1)
        law = np.exp(-(x**2) / (2 * float(variance)))
        cumulative = np.cumsum(law / law.sum())
        edges = np.unique(np.linspace(-4 * sigma, 4 * sigma, bins).round())
        below = cumulative[(edges + reach).astype(int)]
    else:
        # The cumulative distribution of so wide a law is the continuous one, half a step later,
        # up to 1e-16.
        edges = np.linspace(-4 * sigma, 4 * sigma, bins).round()
        below = ndtr((edges + 0.5) / sigma)
    expected = len(draws) * np.diff(below, prepend=0, append=1)
    seen = np.bincount(np.searchsorted(edges, draws), minlength=len(edges) + 1)
    often = expected >= 20
    rare = [seen[~often].sum()], [expected[~often].sum()]
    seen, expected = (np.append(a[often], b) for a, b in zip((seen, expected), rare, strict=True))
    statistic = ((seen - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    return chi2.sf(statistic, len(seen) - 1)


@pytest.mark.parametrize("variance", VARIANCES.values(), ids=VARIANCES)
def test_draws_follow_the_law(variance):
    draws = discrete_gaussian(variance, 25_000, Random(1).randbytes)
    assert p_value(draws, variance) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("variance", VARIANCES.values(), ids=VARIANCES)
def test_a_million_draws_follow_the_law(variance):
    draws = discrete_gaussian(variance, 1_000_000)
    assert p_value(draws, variance, 200) > 1e-6
    assert abs(draws.var() / float(variance) - 1) < 0.01 or variance < 1


@pytest.mark.parametrize("wrong", [1.1, 0.9])
def test_the_test_would_notice_another_law(wrong):
    draws = discrete_gaussian(int(1600 * wrong), 25_000, Random(2).randbytes)
    assert p_value(draws, 1600) < 1e-3


def test_the_system_is_asked_for_its_entropy():
    first, second = (discrete_gaussian(10**15, 50) for _ in range(2))
    assert first.dtype == np.int64
    assert len({*first, *second}) == 100


def test_no_float_is_on_its_path():
    """No float literal, no true division, and of NumPy and math only what keeps integers."""
    tree = ast.parse(inspect.getsource(module))
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.Constant) and isinstance(node.value, float))
        assert not isinstance(node, ast.Div)
        assert not (isinstance(node, ast.Name) and node.id in ("float", "round", "pow"))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np":
            assert node.attr in ("array", "int64")
        if isinstance(node, ast.ImportFrom) and node.module == "math":
            assert [name.name for name in node.names] == ["isqrt"]


@pytest.mark.parametrize("variance", [0, -1, 2**113])
def test_other_variances_are_refused(variance):
    with pytest.raises(ParameterError, match="variance of discrete noise"):
        discrete_gaussian(variance, 1)
