"""Mean and covariance of the rows of a private release.

Sums of columns say mean and variances directly, but a row can move these by the whole width of the
bounds, so that their noise is large where bounds are wide. Frequencies say them too: for Gaussian
rows

    -2 log |z_j| = omega_j^T covariance omega_j,      arg z_j = -omega_j^T mean,

and for any others where frequencies are low. Both are equations of one least-squares problem, each
weighted by its error.
"""

import numpy as np

from ckm._core.frequencies import Frequencies
from ckm._core.moments import SecondMoment
from ckm._core.release import Release
from ckm._util.arrays import BoolArray, ComplexArray, FloatArray

# Moduli of z that are used: below, noise and the shape of the data say more than its covariance.
_MIN_MODULUS = 0.4
# The same in standard deviations of the noise.
_MIN_DEVIATIONS = 5.0
# Error of what a frequency says, beside the noise, if the data is not Gaussian: with y the variance
# along it (-2 log |z|), as multiples of y^2 for y itself (kurtosis) and of y^1.5 for the phase
# (skewness). They let low frequencies decide.
_KURTOSIS_ERROR = 0.5
_SKEWNESS_ERROR = 0.2
# Standard deviation that is assumed of u, where nothing says more: a quarter of half the width.
_USUAL_DEVIATION = 0.25
# Variance of u at least.
_MIN_VARIANCE = 1e-6
# Phases of frequencies beyond this many radians, for an error of the mean, may be off by a turn.
_MAX_PHASE = 1.0
# Unknowns of a full covariance at most: beyond, solving would take seconds.
_MAX_UNKNOWNS = 600
# Rounds of weighting frequencies by the covariance so far.
_ROUNDS = 4
# Moduli of the frequencies that a first covariance comes from: the lowest ones, nearly all of which
# have at least this. The modulus of a high one may be large again where clusters are far apart.
_LOW_MODULUS = 0.6
_LOW_SHARE = 0.9
# Equations for each unknown of a full covariance, below which only variances are estimated.
_EQUATIONS_PER_UNKNOWN = 2


def noised_moments(
    f: Frequencies, release: Release, *, full: bool
) -> tuple[FloatArray, SecondMoment]:
    """Mean (n,) and covariance of the rows, full or its diagonal, in the data's units."""
    assert f.bounds is not None
    half = f.bounds.half
    middle = f.bounds.middle
    # In units of half the width, measured from the middle, as the sums of columns are.
    omega = f.omega * half
    z = release.z * np.exp(-1j * (omega @ ((f.origin - middle) / half)))
    noise = release.deviation / release.size
    kept = np.abs(z) > max(_MIN_MODULUS, _MIN_DEVIATIONS * noise)
    direct, squares = release.column_means()
    direct = np.clip(direct, -1.0, 1.0)
    mean_error, square_error = release.mean_deviations
    errors = square_error + 2 * mean_error * np.abs(direct)
    variances = np.clip(squares - direct**2 + mean_error**2, _MIN_VARIANCE, 1.0)
    low = _lowest(omega, np.abs(z)) & kept
    along = np.where(low, -2 * np.log(np.minimum(np.abs(z), 1.0)), np.inf)[kept]
    covariance = _covariance(omega[kept], z[kept], along, noise, variances, errors)
    # A frequency that is high for the covariance so far has little to say, however large its
    # modulus is.
    for _ in range(_ROUNDS):
        along = _variance_along(omega[kept], z[kept], covariance)
        covariance = _covariance(omega[kept], z[kept], along, noise, variances, errors)
    along = _variance_along(omega[kept], z[kept], covariance)
    mean = _mean(omega[kept], z[kept], along, noise, direct, mean_error)
    own = SecondMoment(covariance if full else np.diag(covariance))
    return middle + half * mean, own.scaled(1 / half)


def _lowest(omega: FloatArray, modulus: FloatArray) -> BoolArray:
    """The frequencies up to the largest length below which moduli are hardly ever small."""
    order = np.argsort(np.linalg.norm(omega, axis=1))
    shares = np.cumsum(modulus[order] >= _LOW_MODULUS) / np.arange(1, len(order) + 1)
    count = np.flatnonzero(shares >= _LOW_SHARE).max(initial=-1) + 1
    is_low = np.zeros(len(order), bool)
    is_low[order[:count]] = True
    return is_low


def _variance_along(omega: FloatArray, z: ComplexArray, covariance: FloatArray) -> FloatArray:
    """The variance of the rows along each frequency: by its modulus if they are Gaussian, and at
    least what the covariance says.
    """
    own = -2 * np.log(np.minimum(np.abs(z), 1.0))
    return np.asarray(np.maximum(own, np.einsum("jd,de,je->j", omega, covariance, omega)))


def _covariance(
    omega: FloatArray,
    z: ComplexArray,
    along: FloatArray,
    noise: float,
    direct: FloatArray,
    errors: FloatArray,
) -> FloatArray:
    """The covariance of u (n, n), from frequencies and noised variances with these errors."""
    n = len(direct)
    first, second = np.triu_indices(n)
    if len(first) > _MAX_UNKNOWNS or len(z) < _EQUATIONS_PER_UNKNOWN * len(first):
        first = second = np.arange(n)
    modulus = np.minimum(np.abs(z), 1.0)
    # The error of log |z| is that of |z|, divided by |z|.
    weights = 1 / np.hypot(2 * noise / modulus, _KURTOSIS_ERROR * along**2)
    is_crossed = first != second
    products = omega[:, first] * omega[:, second] * np.where(is_crossed, 2.0, 1.0)
    # One more equation for each unknown: noised variances, and no correlation.
    guess = np.where(is_crossed, 0.0, direct[first])
    guess_error = np.where(is_crossed, _USUAL_DEVIATION**2, errors[first])
    rows = np.vstack([products * weights[:, None], np.diag(1 / guess_error)])
    values = np.concatenate([-2 * np.log(modulus) * weights, guess / guess_error])
    solved = np.linalg.lstsq(rows, values, rcond=None)[0]
    covariance = np.zeros((n, n))
    covariance[first, second] = solved
    covariance[second, first] = solved
    return _possible(covariance)


def _mean(
    omega: FloatArray,
    z: ComplexArray,
    along: FloatArray,
    noise: float,
    direct: FloatArray,
    error: float,
) -> FloatArray:
    """The mean of u: phases say how far the noised one is off."""
    is_low = np.linalg.norm(omega, axis=1) * error < _MAX_PHASE
    omega = omega[is_low]
    phases = -np.angle(z[is_low] * np.exp(1j * (omega @ direct)))
    own = noise / np.abs(z[is_low])
    weights = 1 / np.hypot(own, _SKEWNESS_ERROR * along[is_low] ** 1.5)
    rows = np.vstack([omega * weights[:, None], np.eye(len(direct)) / error])
    values = np.concatenate([phases * weights, np.zeros(len(direct))])
    shift = np.linalg.lstsq(rows, values, rcond=None)[0]
    return np.asarray(np.clip(direct + shift, -1.0, 1.0))


def _possible(covariance: FloatArray) -> FloatArray:
    """The nearest covariance of points in [-1, 1]^n without negative variances."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    eigenvalues = np.maximum(eigenvalues, _MIN_VARIANCE)
    possible = (vectors * eigenvalues) @ vectors.T
    reach = np.sqrt(np.minimum(np.diag(possible), 1.0) / np.diag(possible))
    return np.asarray(possible * np.outer(reach, reach))
