"""`Budget`: what a release says about the privacy of the units in its data."""

from dataclasses import dataclass
from typing import Any, Self

from ckm._core.accounting import (
    check_delta,
    check_epsilon,
    check_rho,
    epsilon_of,
    rho_of,
    sum_of_rhos,
)
from ckm._messages import Argument
from ckm._util.checks import check_whole_number
from ckm.errors import MismatchError, ParameterError

ROW = "row"
USER = "user"


@dataclass(frozen=True)
class Budget:
    """The privacy of a release: it is rho-zCDP, and so (epsilon, delta)-differentially private,
    for data that differ by one unit, added or removed.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee in the usual form. It follows from `rho` (`ckm._core.accounting`).
    rho : float
        The guarantee that adds up over releases of the same data.
    unit : {"row", "user"}
        What one unit is: one row, or all rows of one user.
    max_rows_per_user : int, optional
        For users, the number of their rows that count at most.

    Examples
    --------
    >>> day = Budget.of(1.0, 1e-6)
    >>> round(day.together(day).epsilon, 3), day.largest(day).epsilon
    (1.451, 1.0)
    """

    epsilon: float
    delta: float
    rho: float
    unit: str = ROW
    max_rows_per_user: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "rho", check_rho(self.rho))
        check_unit(self.unit, self.max_rows_per_user)

    @classmethod
    def of(
        cls, epsilon: Any, delta: Any, unit: str = ROW, max_rows_per_user: int | None = None
    ) -> Self:
        """The budget of one release with this epsilon and delta."""
        rho = rho_of(epsilon, delta)
        return cls(epsilon, delta, rho, unit, max_rows_per_user)

    def together(self, other: "Budget") -> "Budget":
        """What two releases of the same population say together.

        Their rho adds up. zCDP holds for every delta at once, so that delta need not add up: it is
        the larger of the two, and epsilon follows from both.
        """
        self._require_same_unit(other)
        rho = sum_of_rhos([self.rho, other.rho])
        delta = max(self.delta, other.delta)
        return Budget(epsilon_of(rho, delta), delta, rho, self.unit, self._cap_with(other))

    def largest(self, other: "Budget") -> "Budget":
        """What releases of two disjoint populations say together: a unit is in one of them only.

        The largest rho and the largest delta of the two, and the epsilon that follows from both;
        this is at most the larger epsilon.
        """
        self._require_same_unit(other)
        rho = max(self.rho, other.rho)
        delta = max(self.delta, other.delta)
        epsilon = min(epsilon_of(rho, delta), max(self.epsilon, other.epsilon))
        return Budget(epsilon, delta, rho, self.unit, self._cap_with(other))

    def at(self, delta: float) -> "Budget":
        """The same guarantee for another delta: epsilon follows from rho."""
        epsilon = epsilon_of(self.rho, delta)
        return Budget(epsilon, delta, self.rho, self.unit, self.max_rows_per_user)

    def _require_same_unit(self, other: "Budget") -> None:
        if self.unit != other.unit:
            raise MismatchError(
                f"One release protects each {self.unit}, the other each {other.unit}; what they "
                "say together is not known. Release both with the same ",
                Argument("unit", ...),
                ".",
            )

    def _cap_with(self, other: "Budget") -> int | None:
        if self.max_rows_per_user is None or other.max_rows_per_user is None:
            return None
        return max(self.max_rows_per_user, other.max_rows_per_user)


def check_unit(unit: Any, max_rows_per_user: int | None) -> None:
    """Raise `ParameterError` unless `unit` is known, and a cap is given for users only."""
    require_unit(unit)
    if unit == ROW and max_rows_per_user is not None:
        raise ParameterError(
            Argument("max_rows_per_user", max_rows_per_user),
            " is for ",
            Argument("unit", USER),
            "; leave it out, or protect users.",
        )
    if unit == USER:
        check_whole_number(max_rows_per_user, "max_rows_per_user", 1)


def require_unit(unit: Any) -> None:
    """Raise `ParameterError` unless `unit` is known."""
    if unit not in (ROW, USER):
        raise ParameterError(Argument("unit"), f" must be {ROW!r} or {USER!r}; got {unit!r}.")
