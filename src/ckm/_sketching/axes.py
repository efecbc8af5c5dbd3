"""Axes for wide data: the few directions in which a sample of the rows has its clusters.

The principal axes of the sample, found by a randomised decomposition (Halko, Martinsson and Tropp,
2011), and as many of them as k-means needs: clusters of K centroids differ in K - 1 directions at
most, and mostly in far fewer.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ckm._core.categories import Categories, pooled_variances
from ckm._core.projection import MAX_ENTRIES, Projection
from ckm._kmeans.init import kmeans_plus_plus
from ckm._kmeans.points import WeightedPoints
from ckm._messages import Argument
from ckm._util.arrays import Array, Float32Array, FloatArray, LabelArray
from ckm._util.parallel import one_library_thread
from ckm._util.sparse import SparseRows
from ckm.errors import ParameterError

# Axes that are tried: at least, for each cluster, and at most.
MIN_TRIED = 32
TRIED_PER_CLUSTER = 1.25
MAX_TRIED = 128
# Numbers of axes to choose from. Not fewer than K - 1, or than this: k-means on the sample
# may have merged two clusters, whose difference it then does not ask for.
CHOICES = (8, 12, 16, 24, 32, 48, 64, 96, 128)
MAX_LEAST = 24
# The share of the sum of squares that k-means explains, which is left if rows are assigned by the
# chosen axes instead of all that are tried.
KEPT_SHARE = 0.998
# Where there are too many columns for axes: lines of a random projection, and at most.
RANDOM_LINES = 128
MAX_RANDOM_LINES = 2**15 - 1
# Directions beyond the axes that are asked for, and rounds, of the randomised decomposition: the
# last of the axes are then right to about a per cent of their variance.
OVERSAMPLING = 10
POWER_ROUNDS = 1
# Rows of the sample that axes are found on, at most.
MAX_ROWS = 2**13
# Rows per cluster, at least, on which numbers of axes are compared; Lloyd iterations there.
MIN_ROWS_PER_CLUSTER = 20
LLOYD_ITERATIONS = 5
# An origin is subtracted only where the mean is so many standard deviations from zero that float32
# would not be precise: without one, sparse rows stay sparse.
FAR_MEAN = 32.0
_ROWS_AT_ONCE = 256
# The share of the largest variance below which a direction is rounding.
_LEAST_SHARE = 1e-9


class _Centred(NamedTuple):
    """The matrix A = (X - mean) / units of a sample, of which only products are computed."""

    X: Any
    mean: FloatArray
    units: FloatArray

    def times(self, B: Float32Array) -> Float32Array:
        """A B, for B (n, r)."""
        scaled = B * (1 / self.units).astype(np.float32)[:, None]
        product = np.asarray(self.X @ scaled)
        product -= self.mean.astype(np.float32) @ scaled
        return product

    def transposed_times(self, B: Float32Array) -> Float32Array:
        """A^T B, for B (p, r)."""
        product = np.asarray(self.X.T @ B)
        product -= np.outer(self.mean.astype(np.float32), B.sum(axis=0))
        product *= (1 / self.units).astype(np.float32)[:, None]
        return product


def choose_projection(
    rows: Any,
    moments: tuple[FloatArray, FloatArray],
    wanted: Any,
    K: int,
    rng: np.random.Generator,
    standardize: bool = False,
    categories: Categories = (),
) -> Projection:
    """A projection for rows that resemble these (p, n), dense or sparse.

    `moments` are means and deviations of their columns. `wanted` is "auto", a number of axes, or a
    matrix (d, n). The last columns are of `categories`.
    """
    p, n = rows.shape
    mean, deviations = moments
    pooled = np.sqrt(pooled_variances(deviations**2, categories))
    units = np.where(pooled > 0, pooled, 1.0) if standardize else np.ones(n)
    total = float(((deviations / units) ** 2).sum())
    is_far = np.sqrt(((mean / units) ** 2).sum()) > FAR_MEAN * math.sqrt(total)
    origin = mean if is_far and not isinstance(rows, SparseRows) else None
    kept_units = units if standardize else None
    if not isinstance(wanted, (str, int, np.integer)):
        axes = np.asarray(wanted, np.float32)
        found = Projection(axes, origin, kept_units)
        share = _share_along(found, rows, total) if total > 0 else None
        return Projection(axes, origin, kept_units, share)
    with one_library_thread():
        is_auto = isinstance(wanted, str)
        wanted_axes = max(MIN_TRIED, math.ceil(TRIED_PER_CLUSTER * K))
        tried = min(n, p, wanted_axes, MAX_TRIED)
        count = tried if is_auto else int(wanted)
        if count * n > MAX_ENTRIES:
            return _random_lines(RANDOM_LINES if is_auto else count, n, rng, standardize)
        step = -(-p // MAX_ROWS)
        sample = _Centred(_as_matrix(rows[::step]), mean, units)
        if isinstance(rows, SparseRows):
            axes, y = _sparse_axes(sample, deviations, count, rng)
        else:
            axes, y = _principal_axes(sample, count, rng)
        if is_auto:
            axes = axes[: _choose_count(y, K, rng)]
        share = None
        if total > 0:
            # Axes fit the rows that they were found on better than others.
            unseen = _Centred(_as_matrix(rows[step - 1 :: step]), mean, units)
            along = unseen.times(np.ascontiguousarray(axes.T)).astype(np.float64)
            share = min(1.0, float((along**2).mean(axis=0).sum()) / total)
    return Projection(axes, origin, kept_units, share)


def _random_lines(d: int, n: int, rng: np.random.Generator, standardize: bool) -> Projection:
    """A random projection, for more columns than axes can have."""
    if standardize:
        raise ParameterError(
            f"{n:,} columns are too many for axes, which ",
            Argument("standardize", True),
            " needs; leave it out, or hash the rows to fewer columns.",
        )
    if d > MAX_RANDOM_LINES:
        raise ParameterError(
            f"{d} axes of {n:,} columns are too many numbers; give a ",
            Argument("projection", RANDOM_LINES),
            ", or hash the rows to fewer columns.",
        )
    return Projection.random(d, n, rng)


def column_moments(rows: Any) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column (n,) of dense or sparse rows."""
    if not isinstance(rows, SparseRows):
        mean = rows.mean(axis=0, dtype=np.float64)
        squares = np.zeros(len(mean))
        # Differences from the mean, a few rows at a time: squares of large numbers would round.
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            apart = (rows[start : start + _ROWS_AT_ONCE] - mean).astype(np.float32)
            squares += np.einsum("ij,ij->j", apart, apart)
        return mean, np.sqrt(squares / max(1, len(rows)))
    numbers = rows.numbers()
    values = rows.values[numbers].astype(np.float64)
    columns = rows.columns[numbers]
    count = max(1, len(rows))
    mean = np.bincount(columns, values, minlength=rows.n) / count
    square = np.bincount(columns, values**2, minlength=rows.n) / count
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))


def _as_matrix(rows: Any) -> Any:
    return rows.to_scipy() if isinstance(rows, SparseRows) else np.asarray(rows, np.float32)


def _share_along(projection: Projection, rows: Any, total: float) -> float:
    """The share of the variance of rows, `total` in all, that lies along the axes of a matrix."""
    inverse = np.linalg.pinv(projection.axes.astype(np.float64))
    orthonormal = np.linalg.qr(inverse)[0]
    sample = _as_matrix(rows)
    units = np.ones(projection.n) if projection.units is None else projection.units
    along = sample @ (orthonormal / units[:, None])
    return min(1.0, float(np.asarray(along).var(axis=0).sum()) / total)


def _sparse_axes(
    sample: _Centred, deviations: FloatArray, count: int, rng: np.random.Generator
) -> tuple[Float32Array, Float32Array]:
    """The principal axes of sparse rows. Of hashed words most columns are zero in every row of the
    sample, and so are the axes there.
    """
    X, mean, units = sample
    varying = np.flatnonzero(deviations > 0)
    if len(varying) < count + OVERSAMPLING:
        return _principal_axes(sample, count, rng)
    few = _Centred(X[:, varying], mean[varying], units[varying])
    found, y = _principal_axes(few, count, rng)
    axes = np.zeros((len(found), X.shape[1]), np.float32)
    axes[:, varying] = found
    return axes, y


def _principal_axes(
    sample: _Centred, count: int, rng: np.random.Generator
) -> tuple[Float32Array, Float32Array]:
    """The first principal axes (count, n), and the rows of the sample along them (p, count)."""
    p, n = sample.X.shape
    r = min(n, p, count + OVERSAMPLING)
    basis = rng.standard_normal((n, r), np.float32)
    for _ in range(POWER_ROUNDS + 1):
        image = _orthonormal(sample.times(basis))
        basis = _orthonormal(sample.transposed_times(image))
    r = basis.shape[1]
    along = sample.times(basis)
    _, vectors = np.linalg.eigh(along.T.astype(np.float64) @ along)
    first = vectors[:, ::-1][:, : min(count, r)].astype(np.float32)
    return np.ascontiguousarray(_straightened(basis @ first).T), along @ first


def _orthonormal(columns: Float32Array) -> Float32Array:
    """Orthonormal columns that span these (k, r): fewer if some depend on others.

    By their products, which for k far above r takes a fraction of the time of a QR decomposition.
    """
    products = columns.T.astype(np.float64) @ columns
    lengths = np.sqrt(np.maximum(np.diag(products), np.finfo(np.float64).tiny))
    variances, vectors = np.linalg.eigh(products / np.outer(lengths, lengths))
    is_own = variances > _LEAST_SHARE * variances[-1]
    turned = vectors[:, is_own] / np.sqrt(variances[is_own]) / lengths[:, None]
    return _straightened(columns @ turned.astype(np.float32))


def _straightened(columns: Float32Array) -> Float32Array:
    """The orthonormal columns nearest to these, which rounding left not quite orthonormal."""
    values, vectors = np.linalg.eigh((columns.T @ columns).astype(np.float64))
    return np.asarray(columns @ (vectors / np.sqrt(values) @ vectors.T).astype(np.float32))


def _choose_count(y: Float32Array, K: int, rng: np.random.Generator) -> int:
    """How many of the axes (p, D) k-means needs, judged by rows that it did not see.

    Centroids of half of the rows explain a sum of squares of the other half, along all axes. With
    fewer axes the same centroids get other rows, and explain less of them: chance adds nothing to
    it, and whether the centroids are the best ones hardly matters.
    """
    order = rng.permutation(len(y))
    seen, unseen = y[order[::2]], y[order[1::2]]
    least = K - 1
    K = max(2, min(K, len(seen) // MIN_ROWS_PER_CLUSTER))
    if len(seen) <= K:
        return int(y.shape[1])
    points = WeightedPoints(seen.astype(np.float64), np.ones(len(seen)), subtract=True)
    C = kmeans_plus_plus(points, K, rng, stop_when_covered=True).astype(np.float32)
    for _ in range(LLOYD_ITERATIONS):
        C = _means(seen, _nearest(seen, C), C)
    enough = KEPT_SHARE * _explained(unseen, C, y.shape[1])
    for count in CHOICES:
        is_candidate = min(least, MAX_LEAST) <= count < y.shape[1]
        if is_candidate and _explained(unseen, C, count) >= enough:
            return count
    return int(y.shape[1])


def _explained(y: Float32Array, C: Float32Array, count: int) -> float:
    """The sum of squares of rows that centroids explain, which are assigned by the first axes."""
    labels = _nearest(y[:, :count], C[:, :count])
    left = ((y - C[labels]).astype(np.float64) ** 2).sum()
    return float((y.astype(np.float64) ** 2).sum() - left)


def _means(y: Float32Array, labels: LabelArray, C: Float32Array) -> Float32Array:
    """The mean of the rows of each label (K, D); C where there are none."""
    mass = np.bincount(labels, minlength=len(C))[:, None]
    members = sparse.csr_array(
        (np.ones(len(labels), np.float32), (labels, np.arange(len(labels)))),
        shape=(len(C), len(labels)),
    )
    return np.where(mass > 0, (members @ y) / np.maximum(mass, 1), C).astype(np.float32)


def _nearest(y: Float32Array, C: Float32Array) -> LabelArray:
    scores: Array = y @ C.T - (C**2).sum(axis=1) / 2
    return np.asarray(scores.argmax(axis=1).astype(np.int32))
