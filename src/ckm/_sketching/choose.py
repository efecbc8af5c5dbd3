"""Which frequencies a sketch gets: those of an earlier one, or new ones at the scale of a pilot."""

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ckm._core.frequencies import Frequencies, draw_frequencies
from ckm._core.laws import DEFAULT_DISTRIBUTION, find_law
from ckm._core.pool import Pool
from ckm._core.sketch import Sketch
from ckm._core.storage import load
from ckm._sketching.pilot import PILOT_ROWS, Pilot, draw_pilot, pilot_from_rows
from ckm._sketching.scale import estimate_scale
from ckm._sources import Chunk, Source
from ckm._sources.base import pick_evenly
from ckm._sources.engines.base import Job, PartitionedSource
from ckm._util.arrays import Array
from ckm._util.checks import (
    FREQUENCIES_PER_PARAMETER,
    check_variance,
    check_whole_number,
    require_enough_frequencies,
)
from ckm._util.random import stream
from ckm._util.warn import warn_user
from ckm.errors import MismatchError, NonFiniteError, ParameterError, ScaleWarning

SURVEYED = 16  # partitions that a pilot is drawn from, where they hold enough rows

_log = logging.getLogger(__name__)


class Choice(NamedTuple):
    """What was asked of the frequencies: see `ckm.sketch`."""

    n_clusters: int | None = None
    sketch_size: int | None = None
    scale: float | str = "auto"
    distribution: str = DEFAULT_DISTRIBUTION
    standardize: bool = False

    def given_scale(self) -> float | None:
        """The scale, known to be a variance; None where it is to be estimated."""
        return (
            None
            if isinstance(self.scale, str) and self.scale == "auto"
            else check_variance(self.scale)
        )

    def check(self) -> None:
        """Refuse now what would be refused once there are rows."""
        resolve_size(self.n_clusters, self.sketch_size, 1)
        find_law(self.distribution)
        self.given_scale()


def resolve_size(n_clusters: int | None, sketch_size: int | None, n_features: int) -> int:
    """The number m of frequencies: `sketch_size`, else five for each of the K n coordinates to be
    found (Section 4.3).
    """
    if n_clusters is not None:
        n_clusters = check_whole_number(n_clusters, "n_clusters", 1)
    if sketch_size is not None:
        m = check_whole_number(sketch_size, "sketch_size", 1)
        if n_clusters is not None:
            require_enough_frequencies(m, n_clusters, n_features)
        return m
    if n_clusters is None:
        raise ParameterError(
            "The size of the sketch is not known: give n_clusters=K (m = 5 * K * n frequencies follow), or sketch_size=m itself."
        )
    return FREQUENCIES_PER_PARAMETER * n_clusters * n_features


def resolve_like(like: Sketch | Frequencies | str | Path | None) -> Sketch | None:
    """The sketch behind `like=`; an empty one for frequencies alone."""
    if like is None or isinstance(like, Sketch):
        return like
    if isinstance(like, Frequencies):
        return Sketch.empty(like)
    if isinstance(like, (str, os.PathLike)):
        return load(like)
    raise ParameterError(
        f"like= takes a sketch, frequencies, or the name of a sketch file; got {type(like).__name__}."
    )


def choose_frequencies(
    source: Source, choice: Choice, model: Sketch | None, seed: int
) -> Frequencies:
    """Those of `model`, where there is one; else new ones, drawn around the pilot's mean, at its
    scale unless one is given.
    """
    if model is not None:
        frequencies = _checked_like(model, source, choice)
        resolve_size(choice.n_clusters, frequencies.m, frequencies.n)
        return frequencies
    n = source.n_features
    m = resolve_size(choice.n_clusters, choice.sketch_size, n)
    find_law(choice.distribution)
    choice.given_scale()
    if isinstance(source, PartitionedSource):
        found = survey_partitions(source, SurveyJob(choice, n, m, seed, source.columns))
    else:
        found = survey(draw_pilot(source, stream(seed, "pilot")), choice, n, m, seed)
    if not found.rows and choice.given_scale() is None:
        warn_user(
            "There are no rows to estimate the scale from: assuming data of unit variance around zero. Give scale= (a variance), or like=.",
            ScaleWarning,
        )
    _log.info(
        "pilot of %d distinct rows: variance %.4g within clusters, %.4g in all, along an axis",
        found.rows,
        found.scale,
        found.spread or 0,
    )
    origin, scale, _, reach, units = found
    return draw_frequencies(
        m,
        n,
        scale=scale,
        distribution=choice.distribution,
        origin=origin,
        spread=reach,
        units=units,
        seed=seed,
    )


class Survey(NamedTuple):
    """What a pilot tells of the data: all that frequencies are drawn by. `rows` says how many
    distinct ones it had.
    """

    origin: Array
    scale: float
    rows: int
    spread: float | None = None
    units: Array | None = None


def survey(pilot: Pilot, choice: Choice, n: int, m: int, seed: int) -> Survey:
    """Origin, scale, spread and units from a pilot; one and zero where it has no rows."""
    given, empty = choice.given_scale(), not len(pilot.rows)
    origin, units = np.zeros(n) if empty else pilot.origin, None
    if choice.standardize:
        units = np.ones(n) if empty else pilot.deviations
        pilot = Pilot((pilot.rows - origin) / units, pilot.weights)
    K = choice.n_clusters or max(1, m // (FREQUENCIES_PER_PARAMETER * n))
    sigma2 = (
        estimate_scale(pilot, K, choice.distribution, stream(seed, "scale"))
        if given is None
        else given
    )
    return Survey(
        origin, sigma2, len(pilot.rows), None if empty else pilot.total_variance / n or None, units
    )


@dataclass(frozen=True)
class SurveyJob(Job):
    """A survey by workers: rows are sampled where they are, the samples go to one worker, and what
    it finds comes back, but no row.
    """

    choice: Choice
    n: int
    m: int
    seed: int
    columns: tuple[str, ...] | None = None

    def of_partition(self, number: int, chunks: Iterator[Chunk]) -> Pool:
        """A sample of one partition, known to be finite."""
        rng = stream(self.seed, "pilot", number)
        pool = Pool.empty(PILOT_ROWS, self.n)
        for chunk in chunks:
            _require_finite(chunk, self.columns)
            pool = pool + Pool.draw(rng, *chunk.rows_with_weight(), PILOT_ROWS)
        return pool

    def merge(self, parts: Sequence[Pool]) -> Pool:
        """One sample of several."""
        return sum(parts[1:], parts[0])

    def finish(self, merged: Pool) -> Survey:
        """The survey of the sample."""
        weights = merged.weights if merged.is_complete else np.ones(len(merged))
        pilot = pilot_from_rows(merged.rows, weights)
        found = survey(pilot, self.choice, self.n, self.m, self.seed)
        return found._replace(rows=merged.seen)


def survey_partitions(source: PartitionedSource, job: SurveyJob) -> Survey:
    """What some partitions tell, spread over all of them; all of them, where those have too few
    rows.
    """
    count = source.n_partitions
    which = None if count is None else pick_evenly(count, SURVEYED, stream(job.seed, "pilot"))
    found: Survey = source.run(job, which)
    if count is not None and count > SURVEYED and found.rows < PILOT_ROWS:
        found = source.run(job)
    return found


def _require_finite(chunk: Chunk, columns: tuple[str, ...] | None) -> None:
    rows = chunk.rows_with_weight()[0]
    finite = np.isfinite(rows) if rows.dtype.kind == "f" else np.ones(rows.shape, bool)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        number = int(row) if chunk.weights is None else int(np.flatnonzero(chunk.weights > 0)[row])
        raise chunk.locate_error(
            NonFiniteError(0, int(column), float(rows[row, column])), number, columns
        )


def _checked_like(model: Sketch, source: Source, choice: Choice) -> Frequencies:
    frequencies = model.frequencies
    _, sketch_size, scale, distribution, standardize = choice
    if source.columns is not None and model.columns is not None and source.columns != model.columns:
        raise MismatchError(
            f"The data's columns ({', '.join(source.columns)}) are not those of the sketch given as like= ({', '.join(model.columns)}); "
            f"give the same columns."
        )
    if source.n_features != frequencies.n:
        raise MismatchError(
            f"The data has {source.n_features} columns where the sketch given as like= has {frequencies.n}; give the same columns."
        )
    if sketch_size is not None and sketch_size != frequencies.m:
        raise ParameterError(
            f"sketch_size={sketch_size} contradicts like=, which has {frequencies.m} frequencies; leave it out."
        )
    if scale != "auto" and scale != frequencies.scale:
        raise ParameterError(
            f"scale={scale} contradicts like=, which has the scale {frequencies.scale:g}; leave it out."
        )
    if distribution not in (DEFAULT_DISTRIBUTION, frequencies.distribution):
        raise ParameterError(
            f"distribution={distribution!r} contradicts like=, which has {frequencies.distribution!r}; leave it out."
        )
    if standardize and frequencies.units is None:
        raise ParameterError(
            "standardize=True contradicts like=, whose columns are as they were; leave it out, or sketch all of it anew."
        )
    return frequencies
