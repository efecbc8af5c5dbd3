"""Which number of clusters a sketch speaks for, if for any.

The criterion names the number of components that explain the sketch best. That is an answer where
they explain it, that is, up to chance, and where they are distinct. Rows that are no mixture of
Gaussians of one shape need more components than they have clusters, or are not explained by any
number of them: there, components with no valley between them are one group, and the number of
groups is an answer where all of them are far apart. Everything else is no clear number.
"""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from ckm._analysis.one_shape import OneShapeMixture
from ckm._util.arrays import FloatArray

# Excess of J over its mean that is chance, in standard deviations, and as a share of that mean, for
# what the covariance of features and the end of a descent leave. Gaussian clusters had up to 1 and
# 0.06, uniform rows 4 and more.
_CHANCE_DEVIATIONS = 3.0
_TOLERANCE = 0.1
# Distance of two components, in standard deviations, below which they are not two clusters: the sum
# of two Gaussians closer than 2 has one peak.
_MIN_GAP = 1.5
# Share of the components that must have a peak of their own.
_MIN_PEAKS = 0.75
# Density between two components, as a share of the lower of theirs, above which they share a peak.
_SHARED_PEAK = 0.5
# The same for components that may be no clusters themselves, but parts of some: above it they are
# parts of one. Halves of a long cluster have 0.4 and more, pieces of uniform rows 0.3.
_APART = 0.15
# Multiple of the residual of the best number of components, up to which as many components as there
# are groups may leave. Groups that were right left up to 3.1 times as much, others from 4.3 on.
_MAX_EXCESS = 3.5


@dataclass(frozen=True, eq=False)
class Explanation:
    """K components against chance.

    Parameters
    ----------
    components : OneShapeMixture
        The components.
    misfit : float
        J.
    expected : float
        The mean of J if they were right: degrees of freedom less fitted parameters.
    criterion : float
        J + p ln N, up to a constant; smaller is better.
    """

    components: OneShapeMixture
    misfit: float
    expected: float
    criterion: float

    @property
    def K(self) -> int:
        """The number of components."""
        return len(self.components.means)

    @property
    def residual(self) -> float:
        """J, divided by what chance leaves."""
        return self.misfit / self.expected

    @property
    def is_chance(self) -> bool:
        """Whether the residual may be chance."""
        spread = _CHANCE_DEVIATIONS * np.sqrt(2 * self.expected)
        return bool(self.misfit <= self.expected + spread + _TOLERANCE * self.expected)

    @property
    def rank(self) -> tuple[bool, float]:
        """What explanations are sorted by, the best first.

        Numbers that explain the sketch come first, also where others need so many fewer parameters
        that the criterion prefers them: with few rows in many columns it does.
        """
        return (not self.is_chance, self.criterion)

    @property
    def distinct_number(self) -> int:
        """The number of components once those with about the same centre are one."""
        return int(self.components.close_groups(_MIN_GAP).max()) + 1

    def group_number(self, valley: float) -> int:
        """The number of groups of components with a valley of this depth between them."""
        return int(self.components.groups(valley).max()) + 1


@dataclass(frozen=True)
class Verdict:
    """A number of clusters, or none, and why.

    Parameters
    ----------
    suggestion : int or None
        The number of clusters; None if there is no clear one.
    runner_up : int or None
        The next best answer; None if there is none.
    reason : str
        Why, in a sentence or two.
    """

    suggestion: int | None
    runner_up: int | None
    reason: str


def judge(explained: list[Explanation]) -> Verdict:
    """The number of clusters that these explanations, for K = 1, 2, ..., speak for."""
    order = sorted(explained, key=attrgetter("rank"))
    best = order[0]
    if not best.is_chance:
        return _judge_unexplained(best, explained)
    return _judge_explained(best, order[1].K if len(order) > 1 else None)


def _judge_explained(best: Explanation, second: int | None) -> Verdict:
    K = best.K
    if K == 1:
        return Verdict(1, second, "One Gaussian explains the sketch: there are no clusters in it.")
    explains = f"{K} Gaussians explain the sketch up to chance"
    peaks = best.group_number(_SHARED_PEAK)
    distinct = best.distinct_number
    if distinct == K and peaks >= _MIN_PEAKS * K:
        apart = "each is apart from the others" if peaks == K else "most are apart from the others"
        return Verdict(K, second, f"{explains}, and {apart}.")
    if distinct == peaks == group_count(best) > 1:
        reason = f"{explains}; some have the same centre, and {peaks} groups are clearly apart."
        return Verdict(peaks, K, reason)
    parts = "all of them overlap" if peaks == 1 else f"only {peaks} groups are apart"
    return Verdict(None, K, f"No clear number of clusters: {explains}, but {parts}.")


def group_count(one: Explanation) -> int:
    """The number of groups of components that are clearly apart."""
    return one.group_number(_APART)


def _judge_unexplained(best: Explanation, explained: list[Explanation]) -> Verdict:
    groups = group_count(best)
    # The groups must be what that many components find, too.
    alone = explained[groups - 1]
    is_alike = alone.residual <= _MAX_EXCESS * best.residual
    if groups > 1 and is_alike and group_count(alone) == groups:
        reason = f"{groups} groups are clearly apart, though they are no Gaussians of one shape."
        return Verdict(groups, None, reason)
    return Verdict(
        None,
        best.K,
        f"No clear number of clusters: no number of Gaussians explains the sketch (with {best.K}, "
        f"the residual is {best.residual:.2g} times chance), and they do not fall into groups that "
        "are clearly apart.",
    )


def relative_criteria(explained: list[Explanation]) -> FloatArray:
    """The criterion of each number, relative to the smallest."""
    values = np.array([one.criterion for one in explained])
    return np.asarray(values - values.min())
