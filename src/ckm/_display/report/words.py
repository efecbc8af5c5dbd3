"""What a report says in words: what sets clusters apart, and how far to trust them."""

from dataclasses import dataclass

import numpy as np

from ckm._analysis.profile import describe_gap
from ckm._decoding.status import Status
from ckm._display.report.content import NO_GAP, STABLE, Content

# Contrasts, in standard deviations, from which on a cluster is called very high or low.
_VERY = 1.5
_SOME = 0.5
# The gap from which on clusters are apart.
_APART = 0.6

# Times the noise of sampling that a residual is still called noise.
_FEW_TIMES = 3.0

GOOD = "good"
CAREFUL = "careful"
POOR = "poor"
_VERDICTS = {
    GOOD: "The clusters can be relied on.",
    CAREFUL: "Use the clusters with care.",
    POOR: "Do not rely on these clusters yet.",
}
# What each status means to someone who has never seen one; the finding itself follows.
_STATUSES = {
    Status.UNEXPLAINED: (POOR, "The centroids do not explain the sketch."),
    Status.UNCERTAIN: (CAREFUL, "The sketch leaves open where some centroids belong."),
    Status.SMALL_SKETCH: (POOR, "The sketch is too small for so many clusters."),
    Status.STALE_CELLS: (CAREFUL, "The rows have moved since the anchors were chosen."),
    Status.OTHER_AXES: (CAREFUL, "Rows vary where the sketch does not look."),
    Status.OTHER_SPREAD: (POOR, "The frequencies were chosen for data of another scale."),
    Status.FAR_OUT: (CAREFUL, "Outliers may decide the result."),
    Status.UNRESOLVED: (CAREFUL, "Some coordinates of centroids are estimates."),
    Status.MERGED: (CAREFUL, "Some clusters cannot be told apart."),
    Status.STARVED: (CAREFUL, "Some clusters have hardly any rows."),
}


@dataclass(frozen=True)
class Check:
    """A question about the result, its answer, and how good that is."""

    question: str
    level: str
    answer: str


def adverb(contrast: float) -> str:
    """A contrast in words.

    >>> [adverb(x) for x in (2.0, 0.7, 0.2, -0.7, -2.0)]
    ['very high', 'high', 'slightly high', 'low', 'very low']
    """
    side = "high" if contrast > 0 else "low"
    size = abs(contrast)
    if size < _SOME:
        return f"slightly {side}"
    return f"very {side}" if size >= _VERY else side


def checks(content: Content) -> list[Check]:
    """What speaks for and against the result."""
    found = [_explained(content), *_apart(content), *_number(content), *_stable(content)]
    return found


def verdict(content: Content) -> tuple[str, str]:
    """How far to rely on the clusters: the worst of what is wrong with them, and sentences."""
    if content.K == 1:
        return GOOD, "All rows are one cluster, and its centroid is their mean."
    levels = {check.level for check in (_explained(content), *_stable(content))}
    reasons = []
    column = content.deciding_column
    if column is not None:
        reasons.append(f"One column, {column}, decides them.")
    if content.profile.overall_gap < NO_GAP:
        reasons.append("They are slices of one cloud.")
    if reasons:
        levels.add(CAREFUL)
    level = next(level for level in (POOR, CAREFUL, GOOD) if level in levels)
    return level, " ".join([_VERDICTS[level], *reasons])


def _explained(content: Content) -> Check:
    question = "Do the centroids explain the data?"
    solution = content.solution
    if solution.findings:
        levels = {_STATUSES[finding.status][0] for finding in solution.findings}
        level = POOR if POOR in levels else CAREFUL
        sentences = [
            f"{_STATUSES[f.status][1]} {content.word(f.sentence)}" for f in solution.findings
        ]
        return Check(question, level, " ".join(sentences))
    if content.K == 1:
        return Check(question, GOOD, "There is one, the mean of all rows, which is exact.")
    if solution.decoder == "clompr":
        return Check(question, GOOD, "Nothing speaks against them.")
    left = solution.unexplained
    answer = "Yes, down to the noise of sampling, and nothing else was found to be wrong."
    if left > _FEW_TIMES:
        answer = (
            "Yes, as far as centroids go: what is left unexplained is "
            f"{left:.2g} times the noise of sampling, too little to move them."
        )
    return Check(question, GOOD, answer)


def _apart(content: Content) -> list[Check]:
    value = content.profile.overall_gap
    if not np.isfinite(value):
        return []
    words = describe_gap(value)
    meaning = {
        "slices of one cloud": "borders between them are arbitrary, as those of age groups are",
        "overlapping": "rows near a border could belong to either side",
    }.get(words, "few rows are near a border")
    answer = f"They are {words}: {meaning}."
    thin = [k for k in content.by_share if content.profile.gaps[k] < NO_GAP]
    if thin and words not in ("slices of one cloud", "overlapping"):
        which = ", ".join(map(str, sorted(thin)))
        answer += f" But there is hardly a gap at the border of {which}."
    level = GOOD if value >= _APART and not thin else CAREFUL
    return [Check("Are the clusters apart?", level, answer)]


def _number(content: Content) -> list[Check]:
    curve = content.curve
    if curve is None:
        return []
    question = f"Is {content.K} the right number?"
    if curve.suggestion == content.K:
        return [Check(question, GOOD, f"Yes. {curve.reason}")]
    if curve.suggestion is None:
        return [Check(question, CAREFUL, curve.reason)]
    answer = f"The sketch speaks for {curve.suggestion}. {curve.reason}"
    return [Check(question, CAREFUL, answer)]


def _stable(content: Content) -> list[Check]:
    curve = content.curve
    if curve is None or content.K not in curve.n_clusters:
        return []
    value = float(curve.stability[list(curve.n_clusters).index(content.K)])
    if not np.isfinite(value) or content.K == 1:
        return []
    level = GOOD if value >= STABLE else CAREFUL
    return [
        Check(
            "Would other data with this sketch give the same clusters?",
            level,
            f"{value:.0%} of the rows would stay in their cluster.",
        )
    ]
