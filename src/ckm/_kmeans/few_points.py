"""K-means on few points: plain distances in float64, with points along the lanes of vectors.

Beside thousands of points it takes longer to prepare the search of `nearest`, and to call compiled
code for each step, than to compute the step.
"""

import numpy as np

from ckm._util.jit import entry, leaf


@entry
def find_among_few(columns, C, labels, buffers):  # type: ignore[no-untyped-def]
    """Write the number of the nearest centroid, the first of equals, of each point of `columns`
    (n, N).
    """
    _find(columns, C, labels, buffers)


@entry
def add_labelled(points, weights, labels, sums, mass):  # type: ignore[no-untyped-def]
    """Write the weighted sums of the points with each label, and their weight."""
    _add_up(points, weights, labels, sums, mass)


@entry
def move_among_few(data, workspace, steps, converged_below, C):  # type: ignore[no-untyped-def]
    """Move centroids to the means of the points nearest to them, at most so many times. Returns how
    many steps are left: none once they hardly move, and those from one on in which a centroid would
    have no points.
    """
    points, columns, weights = data
    labels, buffers, sums, mass = workspace
    for step in range(steps):
        _find(columns, C, labels, buffers)
        _add_up(points, weights, labels, sums, mass)
        for k in range(len(mass)):
            if not mass[k] > 0:
                return steps - step
        movement = 0.0
        for k in range(len(mass)):
            for d in range(len(columns)):
                mean = sums[k, d] / mass[k]
                movement += (mean - C[k, d]) * (mean - C[k, d])
                C[k, d] = mean
        if movement <= converged_below:
            break
    return 0


@leaf
def _find(columns, C, labels, buffers):  # type: ignore[no-untyped-def]
    best, distances = buffers
    for i in range(len(best)):
        best[i] = np.inf
        labels[i] = 0
    for k in range(len(C)):
        for i in range(len(distances)):
            distances[i] = 0.0
        for d in range(len(columns)):
            _add_squares(columns[d], C[k, d], distances)
        _keep_nearer(distances, k, best, labels)


@leaf
def _add_squares(column, c, distances):  # type: ignore[no-untyped-def]
    for i in range(len(distances)):
        distances[i] += (column[i] - c) * (column[i] - c)


@leaf
def _keep_nearer(distances, k, best, labels):  # type: ignore[no-untyped-def]
    for i in range(len(best)):
        is_nearer = distances[i] < best[i]
        best[i] = distances[i] if is_nearer else best[i]
        labels[i] = np.int32(k) if is_nearer else labels[i]


@leaf
def _add_up(points, weights, labels, sums, mass):  # type: ignore[no-untyped-def]
    for k in range(len(mass)):
        mass[k] = 0.0
        for d in range(sums.shape[1]):
            sums[k, d] = 0.0
    for i in range(len(points)):
        mass[labels[i]] += weights[i]
        _add_scaled(points[i], weights[i], sums[labels[i]])


@leaf
def _add_scaled(point, weight, total):  # type: ignore[no-untyped-def]
    for d in range(len(total)):
        total[d] += weight * point[d]
