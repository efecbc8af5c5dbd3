"""What a sample of a table says about its columns before they are clustered: which of them are ids,
timestamps, constants, codes, booleans or copies, and whether one has most of the variance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ckm._messages import Argument, Message
from ckm._sources.column_checks import has_id_name
from ckm._util.arrays import Array, BoolArray, FloatArray

# Rows from which on a sample says something.
MIN_ROWS = 40
# Whole values of which a code has at most so many, and the rows for each that it takes.
MAX_CODES = 24
ROWS_PER_CODE = 5
# Share of columns on one scale, such as pixels or answers, above which none of them is a code.
ONE_SCALE_SHARE = 0.5
# Largest distance between the distribution of an id and the uniform one (1 is the largest there
# is); chance adds 1.6 / sqrt(rows).
MAX_UNEVENNESS = 0.05
# A column named as an id has at least so many values: the share of the rows, and the number.
MIN_ID_SHARE = 0.02
MIN_IDS = 30
# Range of consecutive numbers, as a multiple of the number of rows.
CONSECUTIVE = 1.05
# Seconds since 1970 that a timestamp may be: from 1990 to 2040.
FIRST_SECOND = 631_152_000
LAST_SECOND = 2_208_988_800
# What is left of the variance of a copy, as a share, once the other column is known.
MAX_COPY_REST = 1e-10
# Share of the variance that is most of it, and the share of columns that it is then in effect.
DOMINANT_SHARE = 0.5
DOMINANT_COLUMNS = 0.5
MIN_DOMINANT_COLUMNS = 1.2
# Skewness from which on a column has heavy tails, if logarithms have less than half of it: that of
# the exponential distribution, beyond which tails are called heavy. benchmarks/tables.py shows what
# logarithms are worth: at 3.0 the visits of the customers stay as they are, and the adjusted Rand
# index falls from 0.67 to 0.38.
HEAVY_SKEWNESS = 2.0


class Kind(StrEnum):
    """What a column seems to be."""

    ORDINARY = "ordinary"
    ID = "id"
    TIMESTAMP = "timestamp"
    CONSTANT = "constant"
    CODE = "code"
    BOOLEAN = "boolean"
    COPY = "copy"
    HEAVY = "heavy-tailed"
    DOMINANT = "dominant"


@dataclass(frozen=True)
class Advice:
    """What was seen of a column, and what to do about it.

    Parameters
    ----------
    column : str
        The name of the column.
    kind : Kind
        What it seems to be.
    seen : str
        What speaks for it, for the middle of a sentence.
    remedy : Message
        What to write, for the end of a sentence.
    is_certain : bool
        Whether an id is so clearly one that a table without it is what was meant.
    """

    column: str
    kind: Kind
    seen: str
    remedy: Message
    is_certain: bool = False

    @property
    def sentence(self) -> Message:
        """The advice as one sentence."""
        return Message(f"{self.column} {self.seen}: ", self.remedy, ".")


# What is said of several columns of one kind, and what to do about them.
_SEVERAL = {
    Kind.ID: ("look like ids", "leave them out with "),
    Kind.TIMESTAMP: (
        "seem to be times",
        "unless clusters in time are meant, leave them out with ",
    ),
    Kind.CONSTANT: ("have one value each", "leave them out with "),
    Kind.CODE: (
        "have few whole values each",
        "if they are codes rather than amounts, leave them out with ",
    ),
    Kind.BOOLEAN: (
        "are 0 or 1",
        "their centroids are shares of rows; if they should not decide about clusters, leave them "
        "out with ",
    ),
    Kind.COPY: ("are copies of other columns", "count these once, with "),
    Kind.HEAVY: ("have heavy tails", "cluster their logarithms with "),
}


def sentences(advice: Sequence[Advice]) -> list[Message]:
    """The advice in one sentence for each kind."""
    found = []
    for kind in Kind:
        own = [one for one in advice if one.kind is kind]
        if len(own) == 1 or (own and kind not in _SEVERAL):
            found += [one.sentence for one in own]
        elif own:
            seen, remedy = _SEVERAL[kind]
            names = [one.column for one in own]
            argument = "log" if kind is Kind.HEAVY else "exclude"
            together = f"{', '.join(names[:-1])} and {names[-1]} {seen}: {remedy}"
            found.append(Message(together, Argument(argument, names), "."))
    return found


@dataclass(frozen=True, eq=False)
class TableSample:
    """Rows of a table to judge its columns by.

    Parameters
    ----------
    rows : float64 array (k, n)
        The rows, finite.
    weights : float64 array (k,)
        What each stands for.
    columns : sequence of str
        The names of the columns.
    n_rows : int or None
        The number of rows of the table, if it is known.
    first_rows : callable
        Returns the first rows of the table in order, if they can be read.
    """

    rows: FloatArray
    weights: FloatArray
    columns: Sequence[str]
    n_rows: int | None = None
    first_rows: Callable[[], Array | None] = lambda: None


def advise(sample: TableSample, *, standardize: bool = False) -> tuple[Advice, ...]:
    """What to say of the columns of a table, at most once for each, and of the one that has most of
    the variance unless columns are to be standardised.
    """
    if len(sample.rows) < MIN_ROWS:
        return ()
    columns = [_Column(sample, j) for j in range(len(sample.columns))]
    found = [_judge(column) for column in columns]
    for j in _copies(sample.rows):
        if found[j[0]] is None:
            found[j[0]] = _copy(sample.columns[j[0]], sample.columns[j[1]])
    if _are_on_one_scale(sample.rows):
        found = [None if one is not None and one.kind is Kind.CODE else one for one in found]
    left = np.array([one is None or one.kind in _MEASURED for one in found], bool)
    variances = np.array([column.variance for column in columns])
    found = [
        _certain(one, column, variances, left) for one, column in zip(found, columns, strict=True)
    ]
    advice = [one for one in found if one is not None]
    if not standardize:
        advice += _dominant(sample.columns, variances, left)
    return tuple(advice)


# Columns of these kinds have a part in distances that is meant.
_MEASURED = (Kind.CODE, Kind.BOOLEAN, Kind.HEAVY)


class _Column:
    """One column of a sample."""

    def __init__(self, sample: TableSample, j: int) -> None:
        self.sample = sample
        self.j = j
        self.name = str(sample.columns[j])
        self.values = sample.rows[:, j]
        self.lower = float(self.values.min())
        self.upper = float(self.values.max())
        self.distinct = np.unique(self.values)
        self.is_whole = bool((self.values == np.rint(self.values)).all())
        shift = self.values - self.lower
        mean = sample.weights @ shift / sample.weights.sum()
        self.variance = float(sample.weights @ (shift - mean) ** 2 / sample.weights.sum())

    @property
    def is_unique(self) -> bool:
        return len(self.distinct) == len(self.values)

    @property
    def is_even(self) -> bool:
        """Whether the values are spread evenly over their range."""
        k = len(self.distinct)
        along = (self.distinct - self.lower) / (self.upper - self.lower)
        unevenness = float(np.abs(along - (np.arange(k) + 0.5) / k).max())
        return unevenness <= MAX_UNEVENNESS + 1.6 / float(np.sqrt(k))

    @property
    def has_id_name(self) -> bool:
        return has_id_name(self.name)

    @property
    def is_consecutive(self) -> bool:
        n_rows = self.sample.n_rows
        return n_rows is not None and self.upper - self.lower + 1 <= CONSECUTIVE * n_rows

    @property
    def may_be_unique(self) -> bool:
        """Whether there are about as many whole numbers in the range as rows: a sample hardly has
        the first and the last of them.
        """
        n_rows = self.sample.n_rows
        return n_rows is None or CONSECUTIVE * (self.upper - self.lower + 1) >= n_rows

    def is_in_order(self) -> bool:
        """Whether the first rows have increasing or decreasing values."""
        first = self.sample.first_rows()
        if first is None or len(first) < MIN_ROWS:
            return False
        steps = np.diff(np.asarray(first, np.float64)[:, self.j])
        return bool((steps > 0).all() or (steps < 0).all())


def _judge(column: _Column) -> Advice | None:
    """What one column seems to be, without the others; None if it is ordinary."""
    for judge in (_constant, _boolean, _named_id, _timestamp, _unnamed_id, _code, _heavy):
        found = judge(column)
        if found is not None:
            return found
    return None


def _exclude(name: str, reason: str = "leave it out with ") -> Message:
    return Message(reason, Argument("exclude", [name]))


def _constant(column: _Column) -> Advice | None:
    if column.lower < column.upper:
        return None
    seen = f"has the value {column.lower:g} in every row that was looked at"
    remedy = _exclude(column.name, "it tells no rows apart, so that it may be left out with ")
    return Advice(column.name, Kind.CONSTANT, seen, remedy)


def _boolean(column: _Column) -> Advice | None:
    if not np.array_equal(column.distinct, [0.0, 1.0]):
        return None
    share = float(column.sample.weights @ column.values / column.sample.weights.sum())
    seen = f"is 0 or 1 ({share:.0%} of the rows have 1)"
    remedy = _exclude(
        column.name,
        "its centroids are shares of rows; if it should not decide about clusters, leave it out "
        "with ",
    )
    return Advice(column.name, Kind.BOOLEAN, seen, remedy)


def _named_id(column: _Column) -> Advice | None:
    least = max(MIN_IDS, MIN_ID_SHARE * len(column.values))
    if not (column.is_whole and column.has_id_name and len(column.distinct) >= least):
        return None
    if column.is_unique and column.may_be_unique:
        return Advice(column.name, Kind.ID, "numbers the rows", _exclude(column.name))
    return Advice(column.name, Kind.ID, "is named as an id", _exclude(column.name))


def _unnamed_id(column: _Column) -> Advice | None:
    is_id = column.is_whole and column.is_unique and column.may_be_unique
    if not (is_id and column.is_even and len(column.distinct) >= MIN_IDS):
        return None
    seen = "has another whole number in each row, evenly spread, as ids and row numbers have"
    return Advice(column.name, Kind.ID, seen, _exclude(column.name))


def _timestamp(column: _Column) -> Advice | None:
    seen = _time_unit(column)
    if seen is None:
        return None
    remedy = _exclude(column.name, "unless clusters in time are meant, leave it out with ")
    return Advice(column.name, Kind.TIMESTAMP, seen, remedy)


def _time_unit(column: _Column) -> str | None:
    """In which unit a column counts time, in words; None if it does not seem to."""
    if not len(column.distinct) >= MIN_IDS:
        return None
    for factor, unit in ((1, "seconds"), (10**3, "milliseconds"), (10**6, "microseconds")):
        if _within(column, FIRST_SECOND * factor, LAST_SECOND * factor):
            return f"seems to count {unit} since 1970"
    if _within(column, FIRST_SECOND * 10**9, LAST_SECOND * 10**9):
        return "seems to count nanoseconds since 1970"
    if column.is_whole and _within(column, 19000101, 21001231):
        day = column.distinct % 100
        month = column.distinct // 100 % 100
        if ((day >= 1) & (day <= 31) & (month >= 1) & (month <= 12)).all():
            return "seems to be dates, as in 20240131"
    return None


def _within(column: _Column, first: float, last: float) -> bool:
    return first <= column.lower and column.upper <= last


def _code(column: _Column) -> Advice | None:
    count = len(column.distinct)
    is_few = count <= min(MAX_CODES, len(column.values) / ROWS_PER_CODE)
    if not (column.is_whole and is_few):
        return None
    seen = f"has {count} whole values from {column.lower:g} to {column.upper:g}"
    remedy = _exclude(column.name, "if they are codes rather than amounts, leave it out with ")
    return Advice(column.name, Kind.CODE, seen, remedy)


def _heavy(column: _Column) -> Advice | None:
    skewness = _skewness(column.values, column.sample.weights)
    if column.lower < 0 or skewness < HEAVY_SKEWNESS:
        return None
    if abs(_skewness(np.log1p(column.values), column.sample.weights)) > skewness / 2:
        return None
    seen = f"has heavy tails (skewness {skewness:.2g})"
    remedy = Message("cluster its logarithm with ", Argument("log", [column.name]))
    return Advice(column.name, Kind.HEAVY, seen, remedy)


def _skewness(values: FloatArray, weights: FloatArray) -> float:
    total = weights.sum()
    apart = values - weights @ values / total
    deviation = np.sqrt(weights @ apart**2 / total)
    return float(weights @ (apart / deviation) ** 3 / total) if deviation > 0 else 0.0


def _copies(rows: FloatArray) -> list[tuple[int, int]]:
    """Columns that are a multiple of an earlier one, up to a constant, and that one."""
    apart = rows - rows.mean(axis=0)
    lengths = np.sqrt((apart**2).sum(axis=0))
    varies = lengths > 0
    apart[:, varies] /= lengths[varies]
    rest = 1 - (apart.T @ apart) ** 2
    found = []
    for j in np.flatnonzero(varies):
        earlier = np.flatnonzero(varies[:j] & (rest[j, :j] <= MAX_COPY_REST))
        if len(earlier):
            found.append((int(j), int(earlier[0])))
    return found


def _copy(name: str, other: str) -> Advice:
    seen = f"is a copy of {other}, up to its unit"
    return Advice(name, Kind.COPY, seen, _exclude(name, "count it once, with "))


def _are_on_one_scale(rows: FloatArray) -> bool:
    """Whether most columns are whole numbers of one range, as pixels or answers are."""
    is_whole = (rows == np.rint(rows)).all(axis=0)
    lower = rows.min(axis=0)
    upper = rows.max(axis=0)
    usual = is_whole & (lower == np.median(lower)) & (upper == np.median(upper))
    return rows.shape[1] > 4 and bool(usual.mean() > ONE_SCALE_SHARE)


def _certain(
    found: Advice | None, column: _Column, variances: FloatArray, left: BoolArray
) -> Advice | None:
    """The advice on an id, certain if it has unique whole numbers in order and more of the variance
    than all columns that are measured.
    """
    if found is None or found.kind is not Kind.ID or not left.any():
        return found
    is_clear = column.is_unique and column.may_be_unique and column.is_even
    is_clear &= column.has_id_name or column.is_consecutive
    if not (is_clear and column.variance > variances[left].sum() and column.is_in_order()):
        return found
    share = column.variance / (column.variance + variances[left].sum())
    seen = f"numbers the rows in order and has {share:.0%} of the variance"
    return Advice(column.name, Kind.ID, seen, found.remedy, is_certain=True)


def _dominant(names: Sequence[str], variances: FloatArray, left: BoolArray) -> list[Advice]:
    """The advice on the column that has most of the variance, if there is one."""
    own = np.where(left & (variances > 0), variances, 0.0)
    count = int((own > 0).sum())
    if count < 2:
        return []
    share = own / own.sum()
    top = int(np.argmax(share))
    in_effect = 1 / float((share**2).sum())
    if share[top] < DOMINANT_SHARE or in_effect > max(
        DOMINANT_COLUMNS * count, MIN_DOMINANT_COLUMNS
    ):
        return []
    seen = f"has {share[top]:.0%} of the variance of the {count} columns"
    remedy = Message("unless they share a unit, write ", Argument("standardize", True))
    return [Advice(names[top], Kind.DOMINANT, seen, remedy)]
