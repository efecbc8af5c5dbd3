"""What two sketches must have in common to be combined, and the parts of their combination that
are more than sums.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ckm._core.cells import Cells
from ckm._core.pool import Pool
from ckm._messages import Argument, Expression
from ckm._util.warn import warn_user
from ckm.errors import CellsWarning, MismatchError, ParameterError

if TYPE_CHECKING:
    from ckm._core.sketch import Sketch


def refuse_releases(what: str, *sketches: "Sketch") -> None:
    """Refuse arithmetic with private releases: what they reveal together has to be said."""
    if all(sketch.release is None for sketch in sketches):
        return
    if what == "added":
        raise ParameterError(
            "Private releases are added by ckm.merge([a, b], ",
            Argument("population", ...),
            "), which has to know whether anyone is in both.",
        )
    raise ParameterError(f"Private releases cannot be {what}; release the rows again.")


def agreed_columns(a: "Sketch", b: "Sketch") -> tuple[str, ...] | None:
    """The column names of a combination; `MismatchError` if the sketches cannot be combined."""
    mine = a.frequencies.fingerprint
    theirs = b.frequencies.fingerprint
    if mine != theirs:
        raise MismatchError(
            f"These sketches use different frequencies ({mine[:8]}... and {theirs[:8]}...: "
            f"{_difference(a, b)}) and cannot be combined; sketch the second again with ",
            Argument("like", Expression("first")),
            ".",
        )
    if a.columns is not None and b.columns is not None and a.columns != b.columns:
        raise MismatchError(
            f"These sketches have different columns ({', '.join(a.columns)} and "
            f"{', '.join(b.columns)}) and cannot be combined; sketch both with the same ",
            Argument("columns", ...),
            " in the same order.",
        )
    return a.columns if a.columns is not None else b.columns


def joint_pool(a: "Sketch", b: "Sketch") -> Pool | None:
    """The pool of the rows of both sketches.

    There is none if one has rows without a pool: a sample of some rows does not represent all.
    """
    if a.pool is not None and b.pool is not None:
        return a.pool + b.pool
    if b.count == 0:
        return a.pool
    return b.pool if a.count == 0 else None


def joint_cells(a: "Sketch", b: "Sketch", combine: Callable[[Cells, Cells], Cells]) -> Cells | None:
    """The cells of a combination; none, with a warning, if one has rows without cells."""
    if a.cells is not None and b.cells is not None:
        return combine(a.cells, b.cells)
    if b.count == 0:
        return a.cells
    if a.count == 0:
        return b.cells
    if a.cells is not None or b.cells is not None:
        warn_user(
            "One of these sketches has cells and the other has none, so that their combination "
            "has none; sketch both alike to keep them.",
            CellsWarning,
        )
    return None


def _difference(a: "Sketch", b: "Sketch") -> str:
    """The first thing that differs between the frequencies of two sketches, in words."""
    f = a.frequencies
    g = b.frequencies
    if a.columns is not None and b.columns is not None and a.columns != b.columns:
        return f"columns {', '.join(a.columns)} and {', '.join(b.columns)}"
    if f.n_features != g.n_features:
        return f"{f.n_features} and {g.n_features} columns"
    if f.metric != g.metric:
        return f"metrics {f.metric!r} and {g.metric!r}"
    if (f.projection is None) != (g.projection is None):
        return "the rows of one are projected, those of the other are not"
    if f.n != g.n:
        return f"rows projected to {f.n} and to {g.n} numbers"
    if f.m != g.m:
        return f"{f.m} and {g.m} of them"
    if f.distribution != g.distribution:
        return f"{f.distribution} and {g.distribution}"
    if (f.column_units is None) != (g.column_units is None):
        return "the columns of one are standardised, those of the other are not"
    if f.preparation != g.preparation:
        return "the columns of one are prepared in another way than those of the other"
    if (f.bounds is None) != (g.bounds is None):
        return "one has public bounds, the other has none"
    if f.seed != g.seed:
        return f"seeds {f.seed} and {g.seed}"
    return f"each was drawn for its own rows, at the scales {f.scale:.6g} and {g.scale:.6g}"
