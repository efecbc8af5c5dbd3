"""Which frequencies and anchors a sketch gets: those of an earlier sketch, or new ones that a pilot
decides.
"""

import logging
import os
from dataclasses import replace
from typing import Any

import numpy as np

from ckm._core.categories import Categories
from ckm._core.cells import Design
from ckm._core.defaults import DEFAULT_DISTRIBUTION
from ckm._core.drawing import draw_frequencies
from ckm._core.frequencies import Frequencies
from ckm._core.preparation import Preparation, categories_of
from ckm._core.sketch import Sketch
from ckm._core.storage import load
from ckm._messages import Argument, Message
from ckm._sketching.jobs import PilotJob, summarise_partitions
from ckm._sketching.options import ROBUST, SketchOptions, resolve_size
from ckm._sketching.pilot import Pilot, PilotRows, read_pilot_rows
from ckm._sketching.scale import PilotSummary, pilot_rows, summarise_pilot
from ckm._sketching.wide import summarise_source, wide_options
from ckm._sources import Source
from ckm._sources.adapters import in_metric
from ckm._sources.engines.base import PartitionedSource
from ckm._util.checks import EUCLIDEAN, check_metric
from ckm._util.random import stream
from ckm._util.warn import warn_user
from ckm.errors import MismatchError, ParameterError, ScaleWarning

_log = logging.getLogger(__name__)

_LIKE = Argument("like", ...)


def resolve_like(like: Sketch | Frequencies | str | os.PathLike[str] | None) -> Sketch | None:
    """The sketch that `like` stands for: loaded from its file, or empty for frequencies alone."""
    if like is None or isinstance(like, Sketch):
        return like
    if isinstance(like, Frequencies):
        return Sketch.empty(like)
    if isinstance(like, (str, os.PathLike)):
        return load(like)
    raise ParameterError(
        _LIKE,
        f" takes a sketch, frequencies, or the name of a sketch file; got {type(like).__name__}.",
    )


def choose_design(
    source: Source,
    options: SketchOptions,
    model: Sketch | None,
    seed: int,
    pilot: Pilot | None = None,
) -> Design:
    """The frequencies and anchors of `model`, if there is one; otherwise new ones, for a pilot of
    the rows, which is drawn unless it is given.
    """
    if model is not None:
        frequencies = model.frequencies
        _check_columns(model, source)
        check_agreement(model, options)
        design = design_like(model, options)
        n_cells = 0 if design.anchors is None else len(design.anchors)
        resolve_size(options.n_clusters, frequencies.m, frequencies.n, n_cells)
        if frequencies.projection is not None:
            source.stay_sparse()
        return design
    n = source.n_features
    m = options.check(n)
    if options.projects(n):
        options = wide_options(options, n)
    summary = _summarise(source, options, n, m, seed, pilot)
    if summary.projection is not None:
        n = summary.projection.d
        m = options.size_for(n, is_projected=True)
    elif options.projects(n):
        # There are no rows to find axes of.
        m = replace(options, projection=None).check(n)
    if not summary.n_rows and options.given_scale is None:
        warn_user(
            Message(
                "There are no rows to estimate the scale from: assuming data of unit variance "
                "around zero. Give ",
                Argument("scale", ...),
                " (a variance), or ",
                _LIKE,
                ".",
            ),
            ScaleWarning,
        )
    _log.info(
        "pilot of %d rows: scale %.4g, mean variance of a column %.4g",
        summary.n_rows,
        summary.scale,
        summary.variance or 0,
    )
    frequencies = draw_frequencies(
        m,
        n,
        scale=summary.scale,
        distribution=options.distribution,
        origin=summary.origin,
        spread=summary.variance,
        units=summary.units,
        seed=seed,
        projection=summary.projection,
        metric=options.metric,
    )
    preparation = options.preparation(source.columns)
    if preparation is not None:
        frequencies = replace(frequencies, preparation=preparation)
    return Design(frequencies, summary.anchors)


def read_first_rows(
    source: Source, options: SketchOptions, rng: np.random.Generator
) -> PilotRows | None:
    """Rows for the pilot that `choose_design` would draw; None if it draws another kind."""
    n = source.n_features
    if isinstance(source, PartitionedSource) or options.projects(n):
        return None
    m = options.check(n)
    return read_pilot_rows(in_metric(source, options.metric), rng, pilot_rows(options, n, m))


def draw_first_pilot(source: Source, options: SketchOptions, seed: int) -> Pilot | None:
    """The pilot that `choose_design` would draw of these rows; None if it draws another kind."""
    rng = stream(seed, "pilot")
    read = read_first_rows(source, options, rng)
    return None if read is None else read.pilot(rng, standardize=bool(options.standardize))


def design_like(model: Sketch, options: SketchOptions) -> Design:
    """The design of `model`, without its anchors if no cells are asked for."""
    return model.design if options.cells else Design(model.frequencies)


def _summarise(
    source: Source, options: SketchOptions, n: int, m: int, seed: int, pilot: Pilot | None
) -> PilotSummary:
    """The summary of a pilot of the rows, drawn here or by the workers that hold them."""
    if isinstance(source, PartitionedSource):
        return summarise_partitions(source, PilotJob(options, n, m, seed, source.columns))
    if options.projects(n):
        return summarise_source(in_metric(source, options.metric), options, seed)
    if pilot is None:
        pilot = draw_first_pilot(source, options, seed)
    assert pilot is not None
    return summarise_pilot(pilot, options, n, m, seed)


def _check_columns(model: Sketch, source: Source) -> None:
    """Refuse data whose columns are not those of `model`."""
    if source.columns is not None and model.columns is not None and source.columns != model.columns:
        raise MismatchError(
            f"The data's columns ({', '.join(source.columns)}) are not those of the sketch given "
            "as ",
            _LIKE,
            f" ({', '.join(model.columns)}); give the same columns.",
        )
    n = model.frequencies.n_features
    if source.n_features != n:
        raise MismatchError(
            f"The data has {source.n_features} columns where the sketch given as ",
            _LIKE,
            f" has {n}; give the same columns.",
        )


def check_agreement(model: Sketch, options: SketchOptions) -> None:
    """Refuse options that contradict the design of `like`."""
    frequencies, anchors = model.design
    if check_metric(options.metric) not in (EUCLIDEAN, frequencies.metric):
        raise _contradiction("metric", options.metric, f"has {frequencies.metric!r}")
    if isinstance(options.cells, int) and options.cells:
        count = 0 if anchors is None else len(anchors)
        if options.cells != count:
            raise _contradiction("cells", options.cells, f"has {count or 'no'} cells")
    size = options.sketch_size
    if size is not None and size != frequencies.m:
        raise _contradiction("sketch_size", size, f"has {frequencies.m} frequencies")
    scale = options.scale
    if scale != "auto" and scale != frequencies.scale:
        raise _contradiction("scale", scale, f"has the scale {frequencies.scale:g}")
    if options.distribution not in (DEFAULT_DISTRIBUTION, frequencies.distribution):
        raise _contradiction(
            "distribution", options.distribution, f"has {frequencies.distribution!r}"
        )
    if options.standardize and frequencies.column_units is None:
        raise _contradiction(
            "standardize", options.standardize, "has columns that are not standardized"
        )
    known = frequencies.preparation or Preparation()
    if options.is_robust and not known.is_robust:
        raise _contradiction("standardize", ROBUST, "has units that are standard deviations")
    if options.log and (options.preparation(model.columns) or known).logged != known.logged:
        logged = ", ".join((model.columns or ())[j] for j in known.logged)
        has = f"has logarithms of {logged}" if logged else "has no logarithms"
        raise _contradiction("log", list(options.log), has)
    _check_projection(frequencies, options)


def categories_like(model: Sketch, asked: Categories) -> Categories:
    """How the categories of `like` were coded; refuses to code others."""
    known = categories_of(model.frequencies.preparation)
    if asked and asked != tuple(category.request for category in known):
        names = ", ".join(category.name for category in known)
        has = f"has {names} as categories, coded as they were" if known else "has no categories"
        raise _contradiction("categories", [category.name for category in asked], has)
    return known


def _check_projection(frequencies: Frequencies, options: SketchOptions) -> None:
    """Refuse a projection that is not that of `like`."""
    asked = options.projection
    if asked is None or isinstance(asked, str):
        return
    projection = frequencies.projection
    has = "does not project rows"
    if projection is not None:
        has = f"projects rows to {projection.d} numbers"
    if isinstance(asked, (int, np.integer)):
        if projection is None or projection.d != asked:
            raise _contradiction("projection", int(asked), has)
    elif projection is None or not np.array_equal(projection.axes, np.float32(asked)):
        raise _contradiction("projection", ..., has + ", not by this matrix")


def _contradiction(name: str, value: Any, reason: str) -> ParameterError:
    return ParameterError(
        Argument(name, value), " contradicts ", _LIKE, f", which {reason}; leave it out."
    )
