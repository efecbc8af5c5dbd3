"""The arguments of `ckm.sketch` as values, and the size of the sketch that follows from them."""

import os
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from ckm._core.categories import Categories
from ckm._core.defaults import (
    DEFAULT_DISTRIBUTION,
    JUDGES_OF_PROJECTED,
    MAX_FREQUENCIES_BESIDE_CELLS,
    MAX_FREQUENCIES_OF_PROJECTED,
    MAX_WORK_BESIDE_CELLS,
    MIN_FREQUENCIES_BESIDE_CELLS,
    MIN_FREQUENCIES_OF_FIT,
    MIN_WIDE_COLUMNS,
    USUAL_AXES,
    usual_cells,
)
from ckm._core.laws import (
    FREQUENCIES_PER_PARAMETER,
    find_law,
    require_enough_frequencies,
)
from ckm._core.preparation import Preparation
from ckm._messages import Argument
from ckm._sources.column_request import listed
from ckm._util.checks import (
    COSINE,
    EUCLIDEAN,
    check_metric,
    check_variance,
    check_whole_number,
)
from ckm._util.device import check_device
from ckm._util.parallel import thread_count
from ckm.errors import ParameterError

# The value of `standardize` for units that outliers do not change.
ROBUST = "robust"
# Bytes that a frequency takes at least, whatever the distribution: sums, radius and direction.
_BYTES_PER_FREQUENCY = 40
# Multiply-adds that cosine and sine of a phase take, beside n for the phase.
WORK_PER_PAIR = 16


@dataclass(frozen=True)
class SketchOptions:
    """The arguments of `ckm.sketch` that determine the frequencies, where `like` does not; and
    whether these serve one fit of the very rows that they are chosen on, and no others.
    """

    n_clusters: int | None = None
    sketch_size: int | None = None
    scale: float | str = "auto"
    distribution: str = DEFAULT_DISTRIBUTION
    standardize: bool | str = False
    cells: int | str = "auto"
    projection: Any = "auto"
    metric: str = EUCLIDEAN
    log: tuple[str, ...] = ()
    categories: Categories = ()
    serves_one_fit: bool = False

    def projects(self, n_features: int) -> bool:
        """Whether rows of so many columns are projected; refuses what cannot be a projection."""
        asked = self.projection
        if asked is None:
            return False
        if isinstance(asked, str):
            if asked != "auto":
                raise _no_projection(f"{asked!r}")
            is_usual = self.distribution == DEFAULT_DISTRIBUTION and not self.is_robust
            return n_features >= MIN_WIDE_COLUMNS and is_usual
        self._refuse_structure()
        if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool):
            if not 1 <= asked <= n_features:
                raise ParameterError(
                    Argument("projection", int(asked)),
                    f" must be from 1 to the number of columns, {n_features}.",
                )
            return True
        try:
            shape = np.asarray(asked, np.float64).shape
        except (TypeError, ValueError):
            raise _no_projection(type(asked).__name__) from None
        if len(shape) != 2 or shape[1] != n_features or not 1 <= shape[0] <= n_features:
            raise ParameterError(
                "The matrix given as ",
                Argument("projection", ...),
                f" must have shape (d, {n_features}), d from 1 to {n_features}; got {shape}.",
            )
        return True

    def _refuse_structure(self) -> None:
        if self.is_robust:
            raise ParameterError(
                Argument("standardize", ROBUST),
                " is for rows of few columns as they are; set ",
                Argument("projection", None),
                ".",
            )
        if self.distribution == "structured":
            raise ParameterError(
                Argument("distribution", "structured"),
                " is for rows of many columns as they are; leave out ",
                Argument("projection", ...),
                ".",
            )

    def expected_dimension(self, n_features: int) -> int:
        """The number of columns that frequencies will have, about, before rows are seen."""
        if not self.projects(n_features):
            return n_features
        if isinstance(self.projection, str):
            return min(n_features, USUAL_AXES)
        if isinstance(self.projection, (int, np.integer)):
            return int(self.projection)
        return int(np.shape(self.projection)[0])

    @property
    def is_robust(self) -> bool:
        """Whether columns are standardised by their interquartile ranges."""
        return isinstance(self.standardize, str)

    def preparation(self, columns: tuple[str, ...] | None) -> Preparation | None:
        """What is done to these columns; raises if there are none of the names asked for."""
        if self.log and columns is None:
            raise ParameterError(
                Argument("log", list(self.log)),
                " names columns, and this data has no column names; pass a data frame or a "
                "table's file.",
            )
        names = columns or ()
        missing = [name for name in self.log if name not in names]
        if missing:
            raise ParameterError(
                f"There is no column {missing[0]!r} for ",
                Argument("log", ...),
                f" among those that are clustered: {listed(names)}.",
            )
        logged = tuple(sorted({names.index(name) for name in self.log}))
        found = Preparation(logged, self.is_robust, self.categories)
        return found or None

    @property
    def given_scale(self) -> float | None:
        """The scale as a checked variance; None where it is to be estimated."""
        if isinstance(self.scale, str) and self.scale == "auto":
            return None
        return check_variance(self.scale)

    def check(self, n_features: int = 1) -> int:
        """Refuse impossible options before any row is read; the size m of the sketch."""
        dimension = self.expected_dimension(n_features)
        if dimension != n_features and isinstance(self.projection, str):
            # How many axes will be chosen is not known yet.
            resolve_size(self.n_clusters, self.sketch_size, 1, self.cells)
            m = self.sketch_size or self.size_for(dimension, is_projected=True)
        else:
            m = self.size_for(dimension, is_projected=dimension != n_features)
        n_features = dimension
        find_law(self.distribution)
        _ = self.given_scale
        self.check_metric()
        _require_memory(m)
        self.count_cells(m, n_features)
        return m

    def size_for(self, dimension: int, *, is_projected: bool = False) -> int:
        """The number m of frequencies in this dimension."""
        m = resolve_size(self.n_clusters, self.sketch_size, dimension, self.cells)
        if self.sketch_size is not None or self.n_clusters is None or not self.cells:
            return m
        least = MIN_FREQUENCIES_BESIDE_CELLS * self.n_clusters * dimension
        if self.serves_one_fit and self.cells == "auto":
            m = min(m, max(least, MIN_FREQUENCIES_OF_FIT))
        if not is_projected or m <= JUDGES_OF_PROJECTED:
            return m
        if least > MAX_FREQUENCIES_OF_PROJECTED:
            return JUDGES_OF_PROJECTED
        return min(m, MAX_FREQUENCIES_OF_PROJECTED)

    def check_metric(self) -> None:
        """Refuse an unknown metric, and standardised columns of rows of unit length."""
        if isinstance(self.standardize, str) and self.standardize != ROBUST:
            raise ParameterError(
                Argument("standardize"),
                f" must be True, False or {ROBUST!r}; got {self.standardize!r}.",
            )
        if check_metric(self.metric) == COSINE and self.standardize:
            raise ParameterError(
                Argument("metric", COSINE),
                " divides each row by its length, which is a number only if all columns have the "
                "same unit; leave out ",
                Argument("standardize", True),
                ", or scale the columns first.",
            )

    def count_cells(self, m: int, n_features: int) -> int:
        """The number of anchors to choose: "auto" is 16 per cluster (48 from 500 clusters on), at
        least 160. Zero for none.
        """
        if isinstance(self.cells, str) and self.cells == "auto":
            K = self.n_clusters or max(1, m // (FREQUENCIES_PER_PARAMETER * n_features))
            return usual_cells(K)
        return check_cells(self.cells)


@dataclass(frozen=True)
class PassOptions:
    """The arguments of `ckm.sketch` that determine how the rows are added up.

    Parameters
    ----------
    capacity : int
        The size of the pool; zero for none.
    seed : int
        Determines frequencies, pilot and pool.
    n_jobs : int or None
        The number of threads; None for all cores, or one per task on an engine.
    device : str
        Where the sums are computed.
    progress : bool
        Whether to show a progress bar.
    """

    capacity: int
    seed: int
    n_jobs: int | None
    device: str
    progress: bool

    def __post_init__(self) -> None:
        check_device(self.device)
        thread_count(self.n_jobs)


def _no_projection(given: str) -> ParameterError:
    return ParameterError(
        Argument("projection"),
        ' must be "auto", a number of axes, a matrix (d, n), or None; got ' + given + ".",
    )


def _require_memory(m: int) -> None:
    """Refuse a size that cannot fit in memory, instead of running out of it."""
    needed = _BYTES_PER_FREQUENCY * m
    present = _memory_size()
    if needed > present:
        raise ParameterError(
            f"A sketch of m = {m} frequencies needs {needed / 1e9:.3g} GB or more, and this "
            f"machine has {present / 1e9:.3g} GB; ask for fewer clusters, or give a smaller ",
            Argument("sketch_size", ...),
            ".",
        )


def _memory_size() -> int:
    """The bytes of memory of this machine; those that can be addressed, if it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return sys.maxsize


def resolve_size(
    n_clusters: int | None, sketch_size: int | None, n_features: int, cells: int | str = 0
) -> int:
    """The number m of frequencies: `sketch_size`, or five for each of the K n coordinates to be
    found (Section 4.3), or fewer beside cells if there are many columns or clusters.

    `cells` is the number of anchors that are asked for, or that there are.
    """
    if n_clusters is not None:
        n_clusters = check_whole_number(n_clusters, "n_clusters", 1)
    if sketch_size is not None:
        m = check_whole_number(sketch_size, "sketch_size", 1)
        if n_clusters is not None:
            n_cells = check_cells(cells) if cells != "auto" else usual_cells(n_clusters)
            require_enough_frequencies(m, n_clusters, n_features, n_cells)
        return m
    if n_clusters is None:
        raise ParameterError(
            "The size of the sketch is not known: give ",
            Argument("n_clusters", ...),
            " (m = 5 K n frequencies follow), or the size m itself as ",
            Argument("sketch_size", ...),
            ".",
        )
    coordinates = n_clusters * n_features
    m = FREQUENCIES_PER_PARAMETER * coordinates
    if not cells:
        return m
    affordable = MAX_WORK_BESIDE_CELLS * coordinates // (n_features + WORK_PER_PAIR)
    least = MIN_FREQUENCIES_BESIDE_CELLS * coordinates
    return max(least, min(m, affordable, MAX_FREQUENCIES_BESIDE_CELLS))


def check_cells(cells: int | str) -> int:
    """A number of anchors as it was given; zero stands for "auto" here."""
    if isinstance(cells, str):
        if cells == "auto":
            return 0
        raise ParameterError(
            Argument("cells"), f' must be "auto" or a whole number from 0 on; got {cells!r}.'
        )
    return check_whole_number(cells, "cells", 0)
