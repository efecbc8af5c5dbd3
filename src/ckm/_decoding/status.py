"""The kinds of things that can be wrong with decoded centroids."""

from enum import StrEnum
from typing import NamedTuple

from ckm._messages import Message


class Status(StrEnum):
    """How a decoding ended.

    Attributes
    ----------
    OK
        Nothing was found to be wrong.
    UNEXPLAINED
        The recovered measure does not have the data's sketch, or not its variance.
    UNCERTAIN
        The sketch leaves open where centroids belong: others may have a clearly smaller SSE.
    SMALL_SKETCH
        The sketch has too few frequencies for so many clusters.
    STALE_CELLS
        The cells do not explain the sketch. They were not used, unless there are fewer frequencies
        than the centroids without them need.
    OTHER_AXES
        Rows vary across the axes that they were projected to, more than those of the sample did.
    OTHER_SPREAD
        The frequencies were chosen for data of another scale, or are too low for the clusters.
    FAR_OUT
        Outliers below the sketch's detection limit may decide the SSE.
    UNRESOLVED
        Some columns hardly matter for distances, and frequencies alone do not tell where in them
        centroids are: these coordinates are estimates.
    MERGED
        Some centroids are so close that the sketch cannot separate them.
    STARVED
        Some centroids have hardly any weight.
    """

    OK = "ok"
    UNEXPLAINED = "unexplained"
    UNCERTAIN = "uncertain"
    SMALL_SKETCH = "small-sketch"
    STALE_CELLS = "stale-cells"
    OTHER_AXES = "other-axes"
    OTHER_SPREAD = "other-spread"
    FAR_OUT = "far-out"
    UNRESOLVED = "unresolved-columns"
    MERGED = "merged"
    STARVED = "starved"


class Finding(NamedTuple):
    """Something that may be wrong with a solution.

    Parameters
    ----------
    status : Status
        What kind of finding it is.
    sentence : Message
        What was seen and what to do about it.
    """

    status: Status
    sentence: Message
