"""Generated data: the Gaussian mixture of the paper's experiments (Section 4.1)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ckm._util.arrays import FloatArray, IntArray, RowsArray
from ckm._util.checks import check_variance, check_whole_number
from ckm._util.random import RandomState, seed_of, stream

# Rows that means are added to at a time, so that no second copy of the data is made.
_CHUNK_ROWS = 2**16


class Mixture(NamedTuple):
    """Rows that were drawn from a mixture.

    Parameters
    ----------
    rows : float array (N, n)
        The rows.
    labels : int64 array (N,)
        The component that each row was drawn from.
    means : float64 array (K, n)
        The means of the components.

    Examples
    --------
    >>> import ckm
    >>> rows, labels, means = ckm.datasets.gaussian_mixture(1000, 3, 2, random_state=0)
    >>> means.shape
    (3, 2)
    """

    rows: RowsArray
    labels: IntArray
    means: FloatArray


def gaussian_mixture(
    n_samples: int = 300_000,
    n_clusters: int = 10,
    n_features: int = 10,
    *,
    separation: float = 1.5,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = None,
) -> Mixture:
    """Draw rows from a mixture of K unit Gaussians with equal weights.

    Their means are drawn from N(0, c K^(1/n) I), where c is the separation (Section 4.1 of the
    paper).

    Parameters
    ----------
    n_samples : int, default=300_000
        The number of rows N.
    n_clusters : int, default=10
        The number of Gaussians K.
    n_features : int, default=10
        The dimension n.
    separation : float, default=1.5
        The constant c: the larger, the less the clusters overlap.
    dtype : dtype, default=np.float64
        The type of the rows, float32 or float64.
    random_state : None, int, numpy.random.Generator or numpy.random.RandomState, default=None
        The source of randomness. An integer gives the same data each time.

    Returns
    -------
    Mixture
        A named tuple of the rows (N, n), the label of each (N,) and the means (K, n).

    Raises
    ------
    ckm.errors.ParameterError
        An argument is out of range.

    Examples
    --------
    >>> import ckm
    >>> mixture = ckm.datasets.gaussian_mixture(1000, 3, 2, random_state=0)
    >>> mixture.rows.shape, mixture.means.shape
    ((1000, 2), (3, 2))
    """
    n_samples = check_whole_number(n_samples, "n_samples", 0)
    n_clusters = check_whole_number(n_clusters, "n_clusters", 1)
    n_features = check_whole_number(n_features, "n_features", 1)
    separation = check_variance(separation, "separation")
    rng = stream(seed_of(random_state), "dataset")
    deviation = np.sqrt(separation * n_clusters ** (1 / n_features))
    means = rng.standard_normal((n_clusters, n_features)) * deviation
    labels = rng.integers(n_clusters, size=n_samples)
    rows = rng.standard_normal((n_samples, n_features), dtype=np.float32).astype(dtype)
    for start in range(0, n_samples, _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        rows[part] += means[labels[part]].astype(dtype)
    return Mixture(rows, labels, means)
