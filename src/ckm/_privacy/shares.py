"""Noise without a trusted centre: each party adds its share to its own sums before it sends them.

P parties, of which d at most drop out or tell others their noise, each draw discrete Gaussian noise
of variance s >= sigma^2 / (P - d). Whoever learns the total of the parties that stay, and the
noise of those that are not honest, still faces the noise of n = P - d honest parties; that of any
more is added independently and takes nothing away. A sum of discrete Gaussians is not quite a
discrete Gaussian: it is rho-zCDP for

    rho = (Delta / sqrt(n s) + tau sqrt(D))^2 / 2,   tau = 10 sum_{k=1}^{n-1} exp(-2 pi^2 s k/(k+1))

on D integers that one unit moves by a vector of length Delta (Kairouz, Liu and Steinke, "The
distributed discrete Gaussian mechanism for federated learning with secure aggregation", 2021,
Proposition 14). For the variances of a sketch tau has thousands of zeros behind the point, and is
accounted for all the same.
"""

from fractions import Fraction
from math import ceil, isqrt

from ckm._core.accounting import check_rho
from ckm._messages import Argument
from ckm._util.checks import check_whole_number
from ckm.errors import ParameterError

# From this variance of a share on, tau <= 10 (n - 1) exp(-100 pi^2) < 10 (n - 1) 10^-428.
_MIN_VARIANCE = 100
_TAU_PER_PARTY = Fraction(1, 10**427)
# Binary digits of a square root, rounded down.
_ROOT_BITS = 256


def share_variance(
    rho: float, squared_sensitivity: int, n_numbers: int, n_parties: int, n_missing: int = 0
) -> int:
    """The variance of the discrete Gaussian noise that each party adds to each number.

    Parameters
    ----------
    rho : float
        The zCDP that the total shall have.
    squared_sensitivity : int
        Delta^2, by which one unit moves the integers at most.
    n_numbers : int
        The number D of integers.
    n_parties, n_missing : int
        P, and the number d of parties that may drop out or may not be honest.

    Returns
    -------
    int
        The smallest whole variance, or hardly more: rounding is to the safe side.

    Examples
    --------
    >>> share_variance(0.5, 10**12, 2000, n_parties=5, n_missing=1)
    250000000001
    """
    rho = check_rho(rho)
    n_parties = check_whole_number(n_parties, "n_parties", 1)
    n_missing = check_whole_number(n_missing, "n_missing", 0)
    if n_missing >= n_parties:
        raise ParameterError(
            Argument("n_missing", n_missing),
            f" of {n_parties} parties leaves none to rely on; there must be an honest party "
            "that stays.",
        )
    n = n_parties - n_missing
    tau = (n - 1) * _TAU_PER_PARTY
    # Delta / sqrt(n s) <= sqrt(2 rho) - tau sqrt(D), of which the right is rounded down.
    length = _root_below(2 * Fraction(rho)) - tau * n_numbers
    if length <= 0:
        raise ParameterError(Argument("rho"), f" is too small to be shared; got {rho!r}.")
    return max(ceil(squared_sensitivity / (n * length**2)), _MIN_VARIANCE)


def _root_below(value: Fraction) -> Fraction:
    """A number just below the square root."""
    return Fraction(isqrt((value.numerator << 2 * _ROOT_BITS) // value.denominator), 2**_ROOT_BITS)
