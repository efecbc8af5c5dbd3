"""How far clusters are apart, from weighted rows: silhouettes, and gaps at their borders."""

import numpy as np

from ckm._util.arrays import FloatArray, IntArray

# Share of the rows of a cluster that have another as their second nearest, from which on the two
# have a border.
_MIN_NEIGHBOURS = 0.05
# Half the width of a window of the density between two centroids, in their distance; and where the
# peak of each side is looked for.
_WINDOW = 0.1
_PEAKS = (-0.3, -0.15, 0.0, 0.15, 0.3)


def silhouettes(distances: FloatArray, labels: IntArray, mass: FloatArray) -> FloatArray:
    """The mean of 1 - a / b over the rows of each cluster (K,), with a and b their distances to the
    nearest and the second nearest centroid; NaN without rows, and for one cluster alone.
    """
    K = distances.shape[1]
    if K == 1:
        return np.full(1, np.nan)
    a, b = np.partition(distances, 1, axis=1)[:, :2].T
    values = np.where(b > 0, 1 - a / np.where(b > 0, b, 1.0), 0.0)
    total = np.bincount(labels, mass, minlength=K)
    sums = np.bincount(labels, mass * values, minlength=K)
    return np.asarray(np.divide(sums, total, out=np.full(K, np.nan), where=total > 0))


def border_gaps(
    rows: FloatArray, distances: FloatArray, mass: FloatArray, centroids: FloatArray
) -> FloatArray:
    """How empty the fullest border of each cluster is (K,): from 0, where rows are as dense halfway
    to another centroid as around the two, to 1, where there are none.

    Rows of the two clusters are projected to the line through their centroids. Slices of one cloud
    have silhouettes, too, but no gap between them. NaN without rows, and for one cluster alone.
    """
    K = len(centroids)
    if K == 1:
        return np.full(1, np.nan)
    labels, second = np.argsort(distances, axis=1)[:, :2].T
    order = np.argsort(labels, kind="stable")
    members = np.split(order, np.searchsorted(labels[order], np.arange(1, K)))
    found = np.full((K, K), np.nan)
    for k in range(K):
        own = members[k]
        shares = np.bincount(second[own], mass[own], minlength=K)
        for j in np.flatnonzero(shares > _MIN_NEIGHBOURS * max(shares.sum(), 1e-300)):
            if np.isnan(found[k, j]):
                both = np.concatenate([own, members[j]])
                gap = _gap(rows[both], mass[both], centroids[k], centroids[j])
                found[k, j] = found[j, k] = gap
    least = np.nanmin(np.where(np.isnan(found), np.inf, found), axis=1)
    return np.where(np.isfinite(least), least, np.nan)


def _gap(rows: FloatArray, mass: FloatArray, a: FloatArray, b: FloatArray) -> float:
    """One minus the density halfway between two centroids, relative to the lower peak."""
    line = b - a
    length = float(line @ line)
    if not length > 0:
        return 0.0
    at = (rows - a) @ line / length

    def density(center: float) -> float:
        return float(mass[np.abs(at - center) < _WINDOW].sum())

    peaks = max(map(density, _PEAKS)), max(density(1 - t) for t in _PEAKS)
    lower = min(peaks)
    return max(0.0, 1 - density(0.5) / lower) if lower > 0 else 0.0
