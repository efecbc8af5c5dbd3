"""Mean and variances of the columns of a private release.

Sums of columns say them directly, but a row can move these by the whole width of the bounds, so
that their noise is large where bounds are wide. Frequencies say them too: for Gaussian columns

    -2 log |z_j| = sum_d omega_jd^2 v_d,      arg z_j = -omega_j^T mean,

and for any others where frequencies are low. Both are combined by their errors.
"""

import numpy as np

from ckm._core.bounds import Bounds
from ckm._core.frequencies import Frequencies
from ckm._core.release import Release
from ckm._util.arrays import BoolArray, FloatArray

# Moduli of z that are used: below, noise and the shape of the data say more than its variance.
_MIN_MODULUS = 0.4
# The same in standard deviations of the noise.
_MIN_DEVIATIONS = 5.0
# Error of what frequencies say, beside the noise, for columns that are not Gaussian: as a share of
# the variance, and of the standard deviation.
_VARIANCE_ERROR = 0.2
_MEAN_ERROR = 0.05
# Variance of a column at least, as a share of the squared half width of its bounds.
_MIN_VARIANCE = 1e-6
# Phases of frequencies beyond this many radians, for an error of the mean, may be off by a turn.
_MAX_PHASE = 1.0


def noised_moments(f: Frequencies, release: Release) -> tuple[FloatArray, FloatArray]:
    """Mean and variances of the columns (n,), in the data's units."""
    assert f.bounds is not None
    bounds: Bounds = f.bounds
    omega = f.omega * bounds.half
    # u is measured from the middle of the bounds, phases from the origin.
    z = release.z * np.exp(1j * (omega @ ((f.origin - bounds.middle) / bounds.half)))
    noise = release.deviation / release.size
    direct, squares = release.column_means()
    mean_noise, square_noise = release.mean_deviations
    kept = np.abs(z) > max(_MIN_MODULUS, _MIN_DEVIATIONS * noise)
    # The square of a noised mean is too large by the variance of its noise.
    own = squares - direct**2 + mean_noise**2
    own_error = np.full(f.n, square_noise + 2 * mean_noise)
    variances = _variances(omega, z, kept, noise, own, own_error)
    means = _means(omega, z, kept, noise, np.clip(direct, -1.0, 1.0), mean_noise, variances)
    return bounds.middle + bounds.half * means, bounds.half**2 * variances


def _variances(
    omega: FloatArray,
    z: FloatArray,
    kept: BoolArray,
    noise: float,
    direct: FloatArray,
    direct_error: FloatArray,
) -> FloatArray:
    """Variances of u: what frequencies and sums say, weighted by their errors."""
    n = omega.shape[1]
    found = np.clip(direct, _MIN_VARIANCE, 1.0)
    if kept.sum() < 2 * n:
        return found
    modulus = np.abs(z[kept])
    # The error of log |z| is that of |z|, divided by |z|.
    weights = modulus / (2 * noise)
    rows = omega[kept] ** 2 * weights[:, None]
    values = -2 * np.log(np.minimum(modulus, 1.0)) * weights
    # What the sums say is one more equation for each column.
    rows = np.vstack([rows, np.diag(1 / direct_error)])
    values = np.concatenate([values, direct / direct_error])
    solved = np.linalg.lstsq(rows, values, rcond=None)[0]
    errors = np.sqrt(np.diag(np.linalg.pinv(rows.T @ rows)))
    solved = np.clip(solved, _MIN_VARIANCE, 1.0)
    errors = np.hypot(errors, _VARIANCE_ERROR * solved)
    together = (solved / errors**2 + direct / direct_error**2) / (
        1 / errors**2 + 1 / direct_error**2
    )
    return np.asarray(np.clip(together, _MIN_VARIANCE, 1.0))


def _means(
    omega: FloatArray,
    z: FloatArray,
    kept: BoolArray,
    noise: float,
    direct: FloatArray,
    direct_error: float,
    variances: FloatArray,
) -> FloatArray:
    """Means of u in the same way: phases say how far the noised mean is off."""
    n = omega.shape[1]
    is_low = kept & (np.linalg.norm(omega, axis=1) * direct_error < _MAX_PHASE)
    if is_low.sum() < 2 * n:
        return direct
    phases = -np.angle(z[is_low] * np.exp(1j * (omega[is_low] @ direct)))
    weights = np.abs(z[is_low]) / noise
    rows = np.vstack([omega[is_low] * weights[:, None], np.eye(n) / direct_error])
    values = np.concatenate([phases * weights, np.zeros(n)])
    shift = np.linalg.lstsq(rows, values, rcond=None)[0]
    errors = np.diag(np.linalg.pinv(rows.T @ rows)) + _MEAN_ERROR**2 * variances
    # Where frequencies are no better than the sums, the sums stay.
    shrunk = shift * direct_error**2 / (direct_error**2 + errors)
    return np.asarray(np.clip(direct + shrunk, -1.0, 1.0))
