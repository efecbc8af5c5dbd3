"""`KCurve`: what a sketch says about every number of clusters."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from ckm._decoding.solution import Solution
from ckm._decoding.status import Finding, Status
from ckm._util.arrays import FloatArray, Frozen, IntArray, read_only
from ckm._util.summary import Shown, Summary, missing_plots


class Solutions(Mapping[int, Solution]):
    """A `Solution` for each number of clusters, diagnosed when it is first asked for."""

    def __init__(self, numbers: tuple[int, ...], make: Callable[[int], Solution]) -> None:
        self._numbers = numbers
        self._make = make
        self._made = dict[int, Solution]()

    def __getitem__(self, K: int) -> Solution:
        if K not in self._numbers:
            raise KeyError(K)
        if K not in self._made:
            self._made[K] = self._make(K)
        return self._made[K]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"Solutions(n_clusters={self._numbers[0]} to {self._numbers[-1]})"


@dataclass(frozen=True, eq=False, repr=False)
class KCurve(Frozen, Shown):
    """What a sketch says about every number of clusters, as `ckm.curve` returns it.

    Parameters
    ----------
    n_clusters : int array (k,)
        The numbers of clusters K, from 1 on.
    sse : float64 array (k,)
        The SSE that k-means would reach with each, in the units of `Solution.score`.
    sse_interval : float64 array (k, 2)
        Where that SSE lies if the data is another measure that the sketch allows.
    residual : float64 array (k,)
        The whitened residual of K Gaussians, divided by what chance leaves: about one where they
        explain the sketch. NaN if the sketch is too small to say.
    evidence : float64 array (k,)
        Schwarz's criterion of K Gaussians, relative to the smallest: zero is the best number, and
        10 is strong evidence against one. NaN if the sketch is too small to say.
    stability : float64 array (k,)
        The share of the rows that stays in its cluster if centroids are placed on another measure
        that the sketch allows.
    suggestion : int or None
        The number of clusters that the sketch speaks for; None if there is no clear number.
    runner_up : int or None
        The next best answer; None if there is none.
    reason : str
        Why, in a sentence or two.
    findings : tuple of Finding
        What may be wrong with the SSE and the centroids of every number; what else may be wrong
        with those of one, its solution says.
    solutions : mapping from int to Solution
        Centroids for each number of clusters.

    Attributes
    ----------
    status : Status
        The kind of the first finding, or "ok".

    See Also
    --------
    curve : Makes it from a sketch.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=2).rows
    >>> curve = ckm.curve(ckm.sketch(X, n_clusters=8, random_state=0), 8, random_state=0)
    >>> curve.suggestion, curve.solutions[3].centroids.shape
    (3, (3, 2))
    """

    n_clusters: IntArray
    sse: FloatArray
    sse_interval: FloatArray
    residual: FloatArray
    evidence: FloatArray
    stability: FloatArray
    suggestion: int | None
    runner_up: int | None
    reason: str
    findings: tuple[Finding, ...] = ()
    solutions: Mapping[int, Solution] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("sse", "sse_interval", "residual", "evidence", "stability"):
            object.__setattr__(self, name, read_only(getattr(self, name), np.float64))
        object.__setattr__(self, "n_clusters", read_only(self.n_clusters, np.int64))

    @property
    def status(self) -> Status:
        """The kind of the first finding, or "ok" if there is none."""
        return self.findings[0].status if self.findings else Status.OK

    def summary(self) -> Summary:
        """Tell what is printed of it: a row for each number of clusters.

        Returns
        -------
        Summary
            A title, a table and some sentences.
        """
        title = "No clear number of clusters"
        if self.suggestion is not None:
            title = f"Suggested number of clusters: {self.suggestion}"
        return Summary(
            title,
            ("K", "SSE", "from", "to", "residual / chance", "evidence", "stability", ""),
            tuple(self._row(i) for i in range(len(self.n_clusters))),
            (self.reason, *self._other(), *(str(finding.sentence) for finding in self.findings)),
        )

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw the SSE, the evidence and the stability of each number of clusters.

        Parameters
        ----------
        path : str or path-like, optional
            Where to save the plot, as PNG.

        Returns
        -------
        matplotlib.figure.Figure
            The plot.

        Raises
        ------
        MissingPackageError
            If matplotlib is not installed.

        Examples
        --------
        >>> import ckm
        >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=2).rows
        >>> curve = ckm.curve(ckm.sketch(X, n_clusters=8, random_state=0), 8, random_state=0)
        >>> figure = curve.plot()  # doctest: +SKIP
        """
        try:
            from ckm._display.plots_curve import draw_curve
        except ModuleNotFoundError as error:
            raise missing_plots(error) from None
        return draw_curve(self, path)

    def _row(self, i: int) -> tuple[str, ...]:
        K = int(self.n_clusters[i])
        mark = {self.suggestion: "suggested", self.runner_up: "runner-up"}.get(K, "")
        low, high = self.sse_interval[i]
        return (
            f"{K}",
            f"{self.sse[i]:.4g}",
            f"{low:.4g}",
            f"{high:.4g}",
            "" if np.isnan(self.residual[i]) else f"{self.residual[i]:.3g}",
            "" if np.isnan(self.evidence[i]) else f"{self.evidence[i]:.4g}",
            f"{self.stability[i]:.2f}",
            mark,
        )

    def _other(self) -> tuple[str, ...]:
        return () if self.runner_up is None else (f"Runner-up: {self.runner_up}.",)

    def __repr__(self) -> str:
        return (
            f"KCurve(n_clusters=1 to {self.n_clusters[-1]}, suggestion={self.suggestion}, "
            f"runner_up={self.runner_up})"
        )
