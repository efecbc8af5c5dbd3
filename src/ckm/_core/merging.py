"""`ckm.merge`: one sketch of many."""

from collections.abc import Iterable

from ckm._core.released import add_releases
from ckm._core.sketch import Sketch
from ckm._messages import Argument
from ckm.errors import DataError, ParameterError


def merge(sketches: Iterable[Sketch], *, population: str | None = None) -> Sketch:
    """Add up sketches: the result is the sketch of all their rows.

    Parameters
    ----------
    sketches : iterable of Sketch
        At least one, all with the same frequencies. Sketch the first data set, and the others with
        ``like=`` that sketch.
    population : {"disjoint", "same"}, optional
        For private releases (`ckm.release`), whose rows they are. "disjoint": nobody is in two of
        them, and the result is as private as the least private of them. "same": the same people
        may be in several, and what each reveals adds up.

    Returns
    -------
    Sketch
        ``sketches[0] + sketches[1] + ...``

    Raises
    ------
    ckm.errors.MismatchError
        Two sketches have different frequencies or columns.
    ckm.errors.DataError
        There are no sketches.
    ckm.errors.ParameterError
        Something else than sketches was given, or `population` is missing or not needed.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> a = ckm.sketch(np.eye(3), sketch_size=8, scale=1.0, random_state=0)
    >>> b = ckm.sketch(2 * np.eye(3), like=a)
    >>> ckm.merge([a, b]).count
    6
    """
    if isinstance(sketches, Sketch):
        raise ParameterError(
            "merge takes a list of sketches; got one. Give it with others: ckm.merge([a, b])."
        )
    parts = list(sketches)
    if not parts:
        raise DataError("There is nothing to merge; give at least one sketch.")
    for part in parts:
        if not isinstance(part, Sketch):
            raise ParameterError(
                f"merge takes sketches; got {type(part).__name__} ({str(part)[:60]!r}); "
                f"ckm.load reads one from a file."
            )
    has_releases = any(part.release is not None for part in parts)
    if population is not None and not has_releases:
        raise ParameterError(
            Argument("population", population),
            " is for private releases (ckm.release), and none of these sketches is one; leave it "
            "out.",
        )
    total = parts[0]
    for part in parts[1:]:
        total = add_releases(total, part, population) if has_releases else total + part
    return total
