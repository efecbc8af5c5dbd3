"""Two private releases compared: their noise is part of what chance does."""

import numpy as np

from ckm._analysis.comparison import Comparison
from ckm._analysis.explanation import explain, usual_clusters
from ckm._analysis.two_samples import Effect, Null, Pair
from ckm._core.merging import merge
from ckm._core.sketch import Sketch
from ckm._decoding.problem import Problem
from ckm.errors import ParameterError

_NOTE = (
    "Private releases: columns and clusters are not told apart, since what noise does to them is "
    "not accounted for."
)


def compare_releases(a: Sketch, b: Sketch, n_clusters: int | None) -> Comparison:
    """Statistic, p-value and effect of two private releases of the same design."""
    if a.release is None or b.release is None:
        raise ParameterError(
            "One of these sketches is a private release and the other is not; release both, or "
            "compare the exact sketches."
        )
    # Whose rows they are does not matter for what is said here.
    problem = Problem.of(merge([a, b], population="same"))
    pair = Pair(
        a.z,
        b.z,
        a.release.sample_size,
        b.release.sample_size,
        a.release.feature_variance,
        b.release.feature_variance,
        sum((r.count_deviation / r.size) ** 2 for r in (a.release, b.release)),
    )
    explanation = explain(problem, n_clusters or usual_clusters(problem), np.random.default_rng(0))
    null = Null.of(pair, problem.omega, explanation)
    statistic = pair.joint_size * pair.squared_distance
    effect = Effect.of(pair, null)
    p = float(null.law.tail(statistic))
    return Comparison(
        p_value=p,
        p_features=p,
        p_means=None,
        p_variances=None,
        p_shares=None,
        p_centroids=None,
        p_widths=None,
        statistic=statistic,
        expected_statistic=null.law.first,
        effect=effect.value,
        effect_interval=(effect.low, effect.high),
        size_a=pair.size_a,
        size_b=pair.size_b,
        columns=(),
        clusters=(),
        notes=(_NOTE,),
    )
