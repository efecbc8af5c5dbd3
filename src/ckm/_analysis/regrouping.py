"""Out of a local minimum of a match: two components that share one Gaussian are merged, and one
that stands for two is split, as in expectation-maximisation with such moves (Ueda, Nakano,
Ghahramani and Hinton, 2000).
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from ckm._analysis.components import Components
from ckm._analysis.expectation import Shape
from ckm._analysis.matching import Match, Target, match
from ckm._util.arrays import FloatArray, IntArray

# Pairs that are merged and components that are split in turn, with every pair.
_MERGED = 3
_SPLIT = 4
# Half the distance between the two parts of a component that is split, in its standard deviations
# along the axis that it is split along.
_HALF_GAP = 0.8
# Rounds at most; each must lower the excess by this share.
_ROUNDS = 6
_MIN_GAIN = 0.1
# Multiple of the excess that a start must lower, above which it is given up after a few steps. With
# 1.5 twenty Gaussians in ten columns stayed in a local minimum.
_ABORT_FACTOR = 3.0


def regroup(target: Target, found: Match, shape: Shape, most: int) -> Match:
    """A match that is better than `found`, if merging and splitting components leads to one, after
    `most` matches at most. Covariances are diagonal.
    """
    for _ in range(min(_ROUNDS, most // (_MERGED * _SPLIT))):
        limit = _ABORT_FACTOR * found.excess
        starts = _regrouped(target, found.components)
        tried = [match(target, start, shape, abort_above=limit) for start in starts]
        best = min(tried, key=lambda match: match.excess, default=found)
        if not best.excess < (1 - _MIN_GAIN) * found.excess:
            break
        found = best
    return found


def _regrouped(target: Target, components: Components) -> Iterator[Components]:
    """The same number of components, two of them merged and another one split."""
    if len(components) < 3:
        return
    merged = [_merged(components, *pair) for pair in combinations(range(len(components)), 2)]
    for fewer in _closest(target, merged)[:_MERGED]:
        last = len(fewer) - 1
        splits = [_split(fewer, k, d) for k in range(last) for d in range(fewer.n)]
        # The best axis of each component.
        each = [_closest(target, splits[k * fewer.n : (k + 1) * fewer.n])[0] for k in range(last)]
        yield from _closest(target, each)[:_SPLIT]


def _closest(target: Target, choices: list[Components]) -> list[Components]:
    """The choices in the order of their excess."""
    excesses = [target.excess(target.residual(choice)) for choice in choices]
    return [choices[i] for i in np.argsort(excesses, kind="stable")]


def _merged(components: Components, i: int, j: int) -> Components:
    """The components with i and j as one of the same mean and variances, which comes last."""
    pair = np.array([i, j])
    shares = components.weights[pair] / components.weights[pair].sum()
    mean = shares @ components.means[pair]
    spread = (components.means[pair] - mean) ** 2
    variances = shares @ (components.covariances[pair] + spread)
    rest = np.delete(np.arange(len(components)), pair)
    return _with(components, rest, [components.weights[pair].sum()], [mean], [variances])


def _split(components: Components, k: int, d: int) -> Components:
    """The components with k as two, apart along axis d, of the same mean and variances."""
    half = _HALF_GAP * np.sqrt(components.covariances[k, d])
    step = np.zeros(components.n)
    step[d] = half
    variances = components.covariances[k].copy()
    variances[d] -= half**2
    mean = components.means[k]
    weight = components.weights[k] / 2
    rest = np.delete(np.arange(len(components)), k)
    parts = ([weight, weight], [mean - step, mean + step], [variances, variances])
    return _with(components, rest, *parts)


def _with(
    components: Components,
    rest: IntArray,
    weights: list[float],
    means: list[FloatArray],
    variances: list[FloatArray],
) -> Components:
    return Components(
        np.append(components.weights[rest], weights),
        np.vstack([components.means[rest], *means]),
        np.vstack([components.covariances[rest], *variances]),
    )
