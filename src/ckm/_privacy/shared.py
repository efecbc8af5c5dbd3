"""`ckm.SharedRelease`: a private release by several parties, with no one in the middle to trust."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ckm._core.bounds import BoundedSums
from ckm._core.budget import ROW, Budget
from ckm._core.released import released_sketch
from ckm._core.sketch import Sketch
from ckm._messages import Argument
from ckm._privacy.discrete_gaussian import discrete_gaussian
from ckm._privacy.releasing import Query, exact_query, require_public, sensitivity_of
from ckm._privacy.shares import share_variance
from ckm._util.arrays import IntArray
from ckm._util.checks import check_whole_number
from ckm.errors import DataError, MismatchError, ParameterError


@dataclass(frozen=True, eq=False)
class SharedRelease:
    """What parties agree on who release the sketch of all their rows, and no sketch of their own.

    Each party adds a part of the noise to its own numbers (`noised`), and sends them in a way that
    reveals nothing but the total, such as masks that cancel in it. The total has the whole noise
    even if `n_missing` parties drop out, or tell others the noise that they added. `result` makes
    a release of it. `examples/secure_aggregation.py` shows it all.

    Parameters
    ----------
    design : Sketch
        The design that all parties use, from `ckm.public_frequencies`.
    epsilon : float
        How much the total may reveal: above 0; 1 is usual, less is more private.
    delta : float
        The probability that the promise of epsilon does not hold, between 0 and 1: far below one
        over the number of rows.
    n_parties : int
        The number of parties.
    n_missing : int, default=0
        How many of them may drop out or not be honest. The noise of the total grows by a factor of
        n_parties / (n_parties - n_missing), in variance, if all stay.
    unit : {"row", "user"}, default="row"
        What is hidden: one row, or all rows of one user, which must be with one party.
    max_rows_per_user : int, optional
        For users, how many of their rows count; each party sketches its rows with
        ``max_rows_per_user=`` at most this.

    Attributes
    ----------
    budget : Budget
        What the total will say about privacy.
    variance : int
        The variance of the noise that a party adds to each number.

    Raises
    ------
    ckm.errors.ParameterError
        An argument is out of range, or the design was made from rows.

    See Also
    --------
    ckm.release : The release of a sketch by one party that has it.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(30_000, 3, 2, separation=20, random_state=1).rows
    >>> design = ckm.public_frequencies(([-30, -30], [30, 30]), n_clusters=3)
    >>> shared = ckm.SharedRelease(design, epsilon=1.0, delta=1e-6, n_parties=3, n_missing=1)
    >>> parts = [shared.noised(ckm.sketch(X[party::3], like=design)) for party in range(3)]
    >>> private = shared.result(sum(parts), n_present=3)
    >>> private.release.budget.epsilon, abs(private.count - 30_000) < 1000
    (1.0, True)
    """

    design: Sketch
    epsilon: float
    delta: float
    n_parties: int
    n_missing: int = 0
    unit: str = ROW
    max_rows_per_user: int | None = None
    budget: Budget = field(init=False)
    variance: int = field(init=False)

    def __post_init__(self) -> None:
        query = self._query_of(self.design)
        f = self.design.frequencies
        budget = Budget.of(self.epsilon, self.delta, self.unit, self.max_rows_per_user)
        squared = sensitivity_of(budget, f)
        object.__setattr__(self, "budget", budget)
        variance = share_variance(budget.rho, squared, query.size, self.n_parties, self.n_missing)
        object.__setattr__(self, "variance", variance)

    def noised(self, sketch: Sketch) -> IntArray:
        """The numbers of a party with its part of the noise.

        They are not private by themselves: send them masked, so that only the total is learned.
        Each call draws new noise; call it once.

        Parameters
        ----------
        sketch : Sketch
            The sketch of the party's rows, made with ``like=`` the design.

        Returns
        -------
        int64 array (D,)
            To be added up over the parties, modulo 2**64.
        """
        self._require_cap(require_public(sketch))
        if sketch.frequencies.fingerprint != self.design.frequencies.fingerprint:
            raise MismatchError(
                "This sketch has other frequencies than the design that the parties agreed on; "
                "sketch the rows with ",
                Argument("like", ...),
                " that design.",
            )
        query = self._query_of(sketch)
        return query.as_vector() + discrete_gaussian(self.variance, query.size)

    def result(self, total: Any, n_present: int) -> Sketch:
        """The private release of all rows.

        Parameters
        ----------
        total : array of integers (D,)
            The sum of what `noised` gave the parties that are present, modulo 2**64.
        n_present : int
            How many parties these are.

        Returns
        -------
        Sketch
            As from `ckm.release`.
        """
        least = self.n_parties - self.n_missing
        n_present = check_whole_number(n_present, "n_present", 0)
        if not least <= n_present <= self.n_parties:
            raise ParameterError(
                f"The total is of {n_present} parties where {least} to {self.n_parties} were "
                "agreed on; with fewer it has too little noise. Throw it away, and begin again "
                "with a larger ",
                Argument("n_missing"),
                ".",
            )
        query = self._query_of(self.design)
        vector = np.asarray(total)
        if vector.shape != (query.size,) or vector.dtype not in (np.int64, np.uint64):
            raise ParameterError(
                Argument("total"),
                f" must be {query.size} integers of 64 bits; got shape {vector.shape} of "
                f"{vector.dtype}.",
            )
        release = query.released(vector.view(np.int64), n_present * self.variance, self.budget)
        return released_sketch(self.design.frequencies, release, self.design.columns)

    def _query_of(self, sketch: Sketch) -> Query:
        return exact_query(sketch, require_public(sketch))

    def _require_cap(self, bounded: BoundedSums) -> None:
        """Refuse rows of users that may be more than agreed on, or a cap where rows are hidden."""
        cap = bounded.user_cap
        if self.max_rows_per_user is None and not cap:
            return
        if self.max_rows_per_user is None or cap is None or cap > self.max_rows_per_user:
            raise DataError(
                f"The parties agreed on {self.max_rows_per_user or 'any number of'} rows of each "
                f"user, and this sketch has {cap or 'any number'}; sketch the rows with ",
                Argument("max_rows_per_user", self.max_rows_per_user, function="ckm.sketch"),
                ".",
            )
