"""Before a pass over a table: the pilot is looked at, advice on its columns is given, and an id is
left out if it is clearly one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ckm._core.categories import coded_columns
from ckm._core.preparation import Preparation, prepared
from ckm._messages import Argument, Message
from ckm._sketching.advice import Advice, Kind, TableSample, advise
from ckm._sketching.pilot import Pilot
from ckm._sources import Source
from ckm._sources.adapters import SomeColumns
from ckm._sources.column_request import listed
from ckm._util.arrays import Array, IntArray
from ckm._util.warn import warn_user
from ckm.errors import AdviceWarning, ColumnsWarning

# Rows at the beginning of a table that show whether ids are in order.
FIRST_ROWS = 1000

# Columns up to which a message names all that are to be used.
_MOST_NAMES = 20

# What is worth saying of columns that were named.
_OF_CHOSEN = (Kind.HEAVY, Kind.DOMINANT)

OnAdvice = Callable[[Sequence[Advice]], None]


def warn_of_ids(advice: Sequence[Advice]) -> None:
    """Warn of ids that are clustered; other advice is for those who ask for it."""
    for one in advice:
        if one.kind is Kind.ID:
            warn_user(one.sentence, AdviceWarning)


def warn_of_certain_ids(advice: Sequence[Advice]) -> None:
    """Warn of ids that are clearly ids, and that are clustered all the same."""
    warn_of_ids([one for one in advice if one.is_certain])


def warn_of_numbering(rows: Array, columns: Sequence[str] | None) -> None:
    """Warn of columns that number or date the rows (k, n) of a stream, which change by themselves;
    `columns` are their names, if they have some.
    """
    if not columns or len(columns) > _MOST_NAMES:
        return
    found = advise(TableSample(np.asarray(rows, np.float64), np.ones(len(rows)), columns))
    names = [one.column for one in found if one.kind in (Kind.ID, Kind.TIMESTAMP)]
    others = [name for name in columns if name not in names]
    if names and others:
        verb = "numbers or dates" if len(names) == 1 else "number or date"
        message = Message(
            f"{listed(names)} {verb} the rows, so that each batch differs from those before: watch "
            "the other columns, with ",
            Argument("columns", others),
            ".",
        )
        warn_user(message, AdviceWarning)


def ignore_word(word: Message) -> None:
    """Say nothing before a long pass."""


@dataclass(frozen=True)
class Screening:
    """What happens to a table before it is sketched.

    Parameters
    ----------
    leaves_out : bool
        Whether an id that is clearly one is left out.
    on_advice : callable
        Is called with the advice on all columns that are left.
    is_chosen : bool
        Whether the columns were named, so that only their units and tails are spoken of.
    before_long_pass : callable
        Is called with a word before a pass that takes long.
    """

    leaves_out: bool = True
    on_advice: OnAdvice = warn_of_ids
    is_chosen: bool = False
    before_long_pass: Callable[[Message], None] = ignore_word

    def screen(
        self,
        source: Source,
        pilot: Pilot,
        *,
        standardize: bool = False,
        preparation: Preparation | None = None,
    ) -> tuple[Source, IntArray | None]:
        """The table without columns that were left out, and the numbers of the others if some were.
        The advice takes into account what is done anyway.
        """
        names = source.columns
        kept = None
        if names is None or source.is_on_gpu or source.is_sparse:
            return source, kept
        sample = TableSample(
            prepared(pilot.rows, preparation),
            pilot.weights,
            names,
            source.n_rows,
            lambda: source.first_rows(FIRST_ROWS),
        )
        advice = advise(sample, standardize=standardize)
        coded = coded_columns(source.categories)
        advice = tuple(one for one in advice if one.column not in coded)
        if self.is_chosen:
            advice = tuple(one for one in advice if one.kind in _OF_CHOSEN)
        certain = [one.column for one in advice if one.is_certain and self.leaves_out]
        if certain and len(certain) < len(names):
            kept = np.array([j for j, name in enumerate(names) if name not in certain])
            for one in advice:
                if one.column in certain:
                    _warn_left_out(one)
            source = SomeColumns(source, kept)
        self.on_advice([one for one in advice if one.column not in certain])
        return source, kept


NO_SCREENING = Screening(leaves_out=False, on_advice=lambda advice: None)


def with_columns(source: Source, names: tuple[str, ...] | None) -> Source:
    """The source with these of its columns only, in its own order."""
    if names is None or source.columns is None or source.columns == names:
        return source
    if not set(names) < set(source.columns):
        return source
    kept = np.array([j for j, name in enumerate(source.columns) if name in names])
    return SomeColumns(source, kept)


def _warn_left_out(one: Advice) -> None:
    message = Message(
        f"Left out {one.column}, which {one.seen}; to cluster it too, name it in ",
        Argument("columns", ..., function="ckm.sketch"),
        ".",
    )
    warn_user(message, ColumnsWarning)
