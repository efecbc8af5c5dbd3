"""`ckm.release`: a sketch with noise that hides every single row, or every single user."""

import hashlib
import logging
from dataclasses import dataclass
from os import PathLike

import numpy as np

from ckm._core.accounting import variance_for
from ckm._core.bounds import BoundedSums
from ckm._core.budget import ROW, USER, Budget
from ckm._core.frequencies import Frequencies
from ckm._core.release import Release, Steps, squared_sensitivity
from ckm._core.released import released_sketch
from ckm._core.sketch import Sketch
from ckm._messages import Argument
from ckm._privacy.discrete_gaussian import discrete_gaussian
from ckm._privacy.ledger import Ledger, LedgerEntry
from ckm._util.arrays import Array, IntArray
from ckm.errors import DataError, ParameterError

_log = logging.getLogger(__name__)


def release(
    sketch: Sketch,
    epsilon: float,
    delta: float,
    *,
    unit: str = ROW,
    ledger: str | PathLike[str] | None = None,
    population: str | None = None,
) -> Sketch:
    """Add noise to a sketch, so that it can be shared without revealing who is in it.

    The result is (epsilon, delta)-differentially private: with one row more or less (or, with
    ``unit="user"``, one user), every possible result is about as likely as before. It is
    decoded, merged and saved as other sketches are. Each call draws new noise, from the operating
    system and never from a seed, and reveals a little more: release a sketch once.

    Parameters
    ----------
    sketch : Sketch
        The sketch of rows, made with ``like=`` a design of `ckm.public_frequencies`. Weights must
        be whole numbers, and the design must have a cap on them (``max_weight=``).
    epsilon : float
        How much the release may reveal: above 0; 1 is usual, less is more private.
    delta : float
        The probability that the promise of epsilon does not hold, between 0 and 1: far below one
        over the number of rows.
    unit : {"row", "user"}, default="row"
        What is hidden: one row, or all rows of one user. The latter needs a sketch that was made
        with ``user_column=`` and ``max_rows_per_user=``.
    ledger : str or path, optional
        A file that records what was spent on which data. It is written before the release is
        returned, and logged.
    population : str, optional
        A name, in the ledger, for whose data this is. Releases with the same name, or of the same
        sketch, add up.

    Returns
    -------
    Sketch
        The private release: noised sums, the design, and the budget (``release.budget``), and
        nothing else that depends on the rows. Bounds of the data, cells and the pool are left out.

    Raises
    ------
    ckm.errors.ParameterError
        epsilon, delta or unit are out of range, the design was made from rows, or the sketch was
        released already.
    ckm.errors.DataError
        The rows have weights without a cap, or no cap on rows of a user is known.
    ckm.errors.LedgerError
        The ledger is damaged.

    See Also
    --------
    ckm.public_frequencies : A design from public knowledge alone.
    ckm.merge : Add up releases, with ``population=``.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(20_000, 3, 2, separation=20, random_state=1).rows
    >>> design = ckm.public_frequencies(([-30, -30], [30, 30]), n_clusters=3)
    >>> private = ckm.release(ckm.sketch(X, like=design), epsilon=1.0, delta=1e-6)
    >>> private.release.budget.epsilon, abs(private.count - 20_000) < 1000
    (1.0, True)
    >>> ckm.decode(private, 3, random_state=0).centroids.shape
    (3, 2)
    """
    bounded = require_public(sketch)
    budget = Budget.of(epsilon, delta, unit, _user_cap(bounded, unit))
    f = sketch.frequencies
    variance = noise_variance(budget, f)
    query = exact_query(sketch, bounded)
    if ledger is not None:
        spent = Ledger(ledger).record(LedgerEntry(_fingerprint(sketch), budget, population))
        _log.info("spent on this data, this release included: %s", spent)
    elif population is not None:
        raise ParameterError(
            Argument("population", population),
            " is recorded in a ledger; name one with ",
            Argument("ledger", ...),
            ".",
        )
    return released_sketch(f, query.with_noise(variance, budget), sketch.columns)


def noise_variance(budget: Budget, f: Frequencies) -> int:
    """The variance that makes a release rho-zCDP: Delta^2 / (2 rho), rounded up."""
    return variance_for(budget.rho, sensitivity_of(budget, f))


def sensitivity_of(budget: Budget, f: Frequencies) -> int:
    """Delta^2 of one unit: the squared length of the most that it can add.

    A user with up to c rows of weights up to W counts as up to c W rows.
    """
    assert f.bounds is not None
    copies = f.bounds.row_copies * (budget.max_rows_per_user or 1)
    return copies**2 * squared_sensitivity(f.m, f.n)


@dataclass(frozen=True, eq=False)
class Query:
    """The whole numbers that a release adds noise to."""

    sums: Array
    count: int
    first: IntArray
    second: IntArray
    max_weight: int = 1

    def with_noise(self, variance: int, budget: Budget) -> Release:
        """The release: independent discrete Gaussian noise on every number."""
        noise = discrete_gaussian(variance, self.size)
        of_sums, of_count, of_first, of_second = self._split(noise)
        return Release(
            self.sums + of_sums.reshape(self.sums.shape),
            self.count + int(of_count[0]),
            self.first + of_first,
            self.second + of_second,
            variance,
            budget,
            self.max_weight,
        )

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return int(self.sums.size + 1 + 2 * len(self.first))

    def as_vector(self) -> IntArray:
        """All numbers in one int64 vector (size,)."""
        parts = (self.sums.ravel(), np.array([self.count], np.int64), self.first, self.second)
        return np.concatenate(parts)

    def released(self, vector: IntArray, variance: int, budget: Budget) -> Release:
        """The release whose noised numbers are this vector (size,)."""
        sums, count, first, second = self._split(vector)
        sums = sums.reshape(self.sums.shape)
        return Release(sums, int(count[0]), first, second, variance, budget, self.max_weight)

    def _split(self, vector: IntArray) -> list[IntArray]:
        return np.split(vector, np.cumsum([self.sums.size, 1, len(self.first)]))


def exact_query(sketch: Sketch, bounded: BoundedSums) -> Query:
    """The numbers of a sketch in the units of a release (`ckm._core.release`)."""
    f = sketch.frequencies
    assert f.bounds is not None
    steps = Steps.of(f.m, f.n)
    return Query(
        sketch.tally.sums,
        steps.count * sketch.count,
        steps.first * bounded.first,
        steps.second * bounded.second,
        f.bounds.row_copies,
    )


def require_public(sketch: Sketch) -> BoundedSums:
    """The sums within public bounds; an error that quotes no row if the sketch has none."""
    if not isinstance(sketch, Sketch):
        raise ParameterError(f"release takes a Sketch; got {type(sketch).__name__}.")
    if sketch.release is not None:
        raise ParameterError(
            "This sketch is a private release already; release the exact sketch if you want "
            "another, and mind that the two together reveal more."
        )
    bounded = sketch.tally.bounded
    if sketch.frequencies.bounds is None:
        raise ParameterError(
            "The frequencies of this sketch were chosen from rows, or without bounds, so that no "
            "noise would hide a row. Make a design from public bounds "
            "(ckm.public_frequencies, `ckm frequencies`), and sketch the rows with ",
            Argument("like", ...),
            " it.",
        )
    if bounded is None or not sketch.exact:
        raise DataError(
            "The rows of this sketch have weights (or it was scaled), and one row may count for "
            "any number of rows. Sketch them without weights; or with whole-number weights and a "
            "design that caps them: ",
            Argument("max_weight", ..., function="ckm.public_frequencies"),
            ".",
        )
    return bounded


def _user_cap(bounded: BoundedSums, unit: str) -> int | None:
    """The cap on rows of a user, where users are protected."""
    if unit != USER:
        if bounded.user_cap:
            raise ParameterError(
                f"This sketch holds the first {bounded.user_cap} rows of each user: a row more or "
                "less may let another row in, or keep it out. Release it with ",
                Argument("unit", USER),
                ".",
            )
        return None
    # Of zero rows nobody has any; a pass with a cap has its cap all the same.
    if not bounded.user_cap:
        raise DataError(
            "How many rows one user has is not known. Sketch the rows with ",
            Argument("user_column", ..., function="ckm.sketch"),
            " and ",
            Argument("max_rows_per_user", ..., function="ckm.sketch"),
            ".",
        )
    return bounded.user_cap


def _fingerprint(sketch: Sketch) -> str:
    """A fingerprint of the exact sums, by which a ledger knows data again."""
    t = sketch.tally
    digest = hashlib.sha256(sketch.frequencies.fingerprint.encode())
    digest.update(t.sums.tobytes())
    digest.update(str(t.count).encode())
    return digest.hexdigest()
