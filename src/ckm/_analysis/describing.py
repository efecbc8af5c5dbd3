"""`ckm.describe`: one pass over a table that says what each column holds and how to use it."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ckm._analysis.description import ColumnDescription, Description
from ckm._analysis.distinct import DistinctCounter, hash_numbers, hash_texts
from ckm._core.categories import MAX_LEVELS, ONEHOT
from ckm._messages import Argument, Message
from ckm._sketching.advice import Advice, Kind, TableSample, advise, sentences
from ckm._sketching.screening import FIRST_ROWS
from ckm._sources import ColumnRequest, Source, open_source
from ckm._sources.column_request import Vectors, listed
from ckm._sources.engines.base import PartitionedSource
from ckm._util.arrays import Array, FloatArray
from ckm._util.random import RandomState, seed_of, stream
from ckm.errors import ColumnsWarning, DataError

# Rows that quantiles, shape and advice come from: ranks have a standard error of half a percent.
SAMPLE_ROWS = 8192
QUANTILES = (0.01, 0.25, 0.5, 0.75, 0.99)
# Interquartile ranges beyond a quartile from which on a value is an outlier.
OUTLIER_RANGES = 3.0


def describe(
    data: Any, *, columns: Sequence[str] | None = None, random_state: RandomState = 0
) -> Description:
    """Say what the columns of a table hold, and how to use them, in one pass.

    Memory is bounded: different values are counted approximately, and quantiles come from a sample
    of 8192 rows.

    Parameters
    ----------
    data : data frame, str, path, list or other data
        The rows: anything that `ckm.sketch` reads on this machine. Data frames and CSV, Parquet
        and Arrow files are described with all of their columns, others with those of numbers.
    columns : list of str, optional
        The columns of numbers to describe; by default all.
    random_state : int, Generator, RandomState or None, default=0
        Determines the sample.

    Returns
    -------
    Description
        For each column its kind, missing values, number of different values, range, quantiles,
        shape and outliers; and advice on what to exclude, to standardise and to take logarithms of.

    Raises
    ------
    DataError
        If the data is no table of numbers, or stays with an engine.

    See Also
    --------
    sketch : Compress the data; takes the arguments that are advised.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import ckm
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"id": np.arange(2000), "spent": rng.lognormal(3, 2, 2000)})
    >>> ckm.describe(table).arguments
    {'exclude': ['id'], 'log': ['spent']}
    """
    request = ColumnRequest(columns)
    with warnings.catch_warnings():
        # All columns are described, those that would be left out as well.
        warnings.simplefilter("ignore", ColumnsWarning)
        source = open_source(data, request)
    if isinstance(source, PartitionedSource):
        raise DataError(
            f"These rows stay with {source.engine}, where they cannot be described; describe a "
            "part of them that this process can read."
        )
    wanted = None if columns is None else set(map(str, columns))
    table = _Table(source, wanted, seed_of(random_state))
    return table.describe()


class _Table:
    """What one pass over a table adds up."""

    def __init__(self, source: Source, wanted: set[str] | None, seed: int) -> None:
        self.rng = stream(seed, "sample", 1)
        self.n_rows = 0
        self.columns = dict[str, _Numbers | _Others]()
        # Sampled rows of the columns of numbers, with the keys they were drawn by, and first rows.
        self.sample = np.empty((0, 0))
        self.keys = np.empty(0)
        self.first: Array | None = None
        self.every = list[str]()
        self.numeric = list[str]()
        batches = source.table_batches() if wanted is None else None
        pieces = _numeric_chunks(source) if batches is None else _split_batches(batches)
        for piece in pieces:
            self._add(*piece)

    def _add(
        self, every: list[str], names: list[str], numbers: FloatArray, others: dict[str, Any]
    ) -> None:
        self.every = every
        self.n_rows += len(numbers)
        for name, values in zip(names, numbers.T, strict=True):
            self._column(name, _Numbers).add(values)
        for name, values in others.items():
            self._column(name, _Others).add(values)
        self.numeric = names
        if self.first is None or len(self.first) < FIRST_ROWS:
            first = numbers[:FIRST_ROWS]
            self.first = first if self.first is None else np.vstack([self.first, first])
        self._draw(numbers)

    def _column(self, name: str, kind: type) -> Any:
        return self.columns.setdefault(name, kind())

    def _draw(self, numbers: FloatArray) -> None:
        """Keep the rows with the smallest of random keys."""
        keys = self.rng.random(len(numbers))
        if len(self.keys) == SAMPLE_ROWS:
            is_early = keys < self.keys.max()
            keys = keys[is_early]
            numbers = numbers[is_early]
        rows = numbers if not len(self.keys) else np.vstack([self.sample, numbers])
        keys = np.concatenate([self.keys, keys])
        kept = np.sort(np.argsort(keys)[:SAMPLE_ROWS])
        self.sample = rows[kept]
        self.keys = keys[kept]

    def describe(self) -> Description:
        advice = self._advise()
        by_column = {one.column: one for one in advice if one.kind is not Kind.DOMINANT}
        described = []
        for name in self.every:
            column = self.columns[name]
            one = by_column.get(name)
            if isinstance(column, _Others):
                described.append(column.describe(name, self.n_rows))
                continue
            values = self.sample[:, self.numeric.index(name)]
            known = values[np.isfinite(values)]
            described.append(column.describe(name, self.n_rows, known, one))
        arguments = _arguments(advice)
        used = set(self.numeric).difference(arguments.get("exclude", ()))
        numbers = [column for column in described if column.name in used]
        said = (
            *sentences(advice),
            *_said_of_missing(numbers),
            *_said_of_text(described),
            *_said_of_vectors(described),
        )
        return Description(self.n_rows, tuple(described), said, arguments)

    def _advise(self) -> tuple[Advice, ...]:
        """Advice on the columns of numbers of which at least half are known."""
        if not self.n_rows or not self.sample.size:
            return ()
        known = np.isfinite(self.sample)
        usable = np.flatnonzero(known.mean(axis=0) >= 0.5)
        rows = self.sample[:, usable][known[:, usable].all(axis=1)]
        first = None if self.first is None else self.first[:FIRST_ROWS, usable]
        names = [self.numeric[j] for j in usable]
        return advise(TableSample(rows, np.ones(len(rows)), names, self.n_rows, lambda: first))


def _has_few_values(column: ColumnDescription) -> bool:
    return column.kind == "text" and 2 <= column.distinct <= MAX_LEVELS[ONEHOT]


def _said_of_missing(numbers: Sequence[ColumnDescription]) -> list[Message]:
    """What to do about missing values, which are an error otherwise. Which of both takes a
    person, so that it is no part of the arguments.
    """
    names = [column.name for column in numbers if column.missing]
    if not names:
        return []
    verb = "has" if len(names) == 1 else "have"
    drop, impute = Argument("nan", "drop"), Argument("nan", "impute")
    start = f"{listed(names, 5)} {verb} missing values: leave such rows out with "
    return [Message(start, drop, ", or fill the values in with ", impute, ".")]


def _said_of_text(described: Sequence[ColumnDescription]) -> list[Message]:
    """How to use columns of text with few values, which are left out otherwise."""
    names = [column.name for column in described if _has_few_values(column)]
    if not names:
        return []
    verb = "is text" if len(names) == 1 else "are text"
    use = Argument("categories", names)
    return [Message(f"{listed(names)} {verb} of few values: to use them too, write ", use, ".")]


def _said_of_vectors(described: Sequence[ColumnDescription]) -> list[Message]:
    """How to use columns whose cells are whole rows, which are left out beside numbers."""
    return [
        Message(
            f"{column.name} holds {column.kind}: to cluster these, and no other column, write ",
            Argument("columns", column.name),
            ".",
        )
        for column in described
        if isinstance(column.kind, Vectors)
    ]


def _arguments(advice: Sequence[Advice]) -> dict[str, Any]:
    """Arguments of `ckm.sketch` that follow the advice. Codes and booleans take a person."""
    leave = (Kind.ID, Kind.TIMESTAMP, Kind.CONSTANT, Kind.COPY)
    found: dict[str, Any] = {
        "exclude": [one.column for one in advice if one.kind in leave],
        "log": [one.column for one in advice if one.kind is Kind.HEAVY],
        "standardize": any(one.kind is Kind.DOMINANT for one in advice),
    }
    return {name: value for name, value in found.items() if value}


# All columns, those of numbers, their values (b, n), and the values of the others by name.
_Piece = tuple[list[str], list[str], FloatArray, dict[str, Any]]


def _numeric_chunks(source: Source) -> Iterator[_Piece]:
    """The columns of numbers of any source, chunk by chunk."""
    names = list(source.columns or (f"[{j}]" for j in range(source.n_features)))
    for chunk in source.chunks():
        yield names, names, np.asarray(chunk.rows, np.float64), {}


def _split_batches(batches: Iterator[Any]) -> Iterator[_Piece]:
    """The columns of numbers of record batches, and the others by name."""
    from ckm._sources.arrow import describe_type, to_rows

    for batch in batches:
        is_number = [describe_type(field.type) is None for field in batch.schema]
        names = [name for name, own in zip(batch.schema.names, is_number, strict=True) if own]
        numbers = to_rows([batch.column(name) for name in names], batch.num_rows)
        others = {name: batch.column(name) for name in batch.schema.names if name not in names}
        yield batch.schema.names, names, np.asarray(numbers, np.float64), others


class _Numbers:
    """The sums of a column of numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.shift = 0.0
        self.first = 0.0
        self.second = 0.0
        self.lower = np.inf
        self.upper = -np.inf
        self.distinct = DistinctCounter()

    def add(self, values: FloatArray) -> None:
        known = values[np.isfinite(values)]
        if not len(known):
            return
        if not self.count:
            self.shift = float(known[0])
        apart = known - self.shift
        self.count += len(known)
        self.first += float(apart.sum())
        self.second += float((apart**2).sum())
        self.lower = min(self.lower, float(known.min()))
        self.upper = max(self.upper, float(known.max()))
        self.distinct.add(hash_numbers(np.ascontiguousarray(known)))

    def describe(
        self, name: str, n_rows: int, sample: FloatArray, advice: Advice | None
    ) -> ColumnDescription:
        missing = 1 - self.count / n_rows if n_rows else 0.0
        if not self.count or not len(sample):
            return ColumnDescription(name, "empty", missing, 0)
        mean = self.first / self.count
        variance = max(self.second / self.count - mean**2, 0.0)
        quantiles = np.quantile(sample, QUANTILES)
        reach = OUTLIER_RANGES * (quantiles[3] - quantiles[1])
        is_far = (sample < quantiles[1] - reach) | (sample > quantiles[3] + reach)
        apart = sample - sample.mean()
        deviation = float(sample.std())
        return ColumnDescription(
            name,
            Kind.ORDINARY.value if advice is None else advice.kind.value,
            missing,
            # An estimate beyond 1024, which may be above the number of rows.
            min(self.distinct.count, self.count),
            self.lower,
            self.upper,
            self.shift + mean,
            float(np.sqrt(variance)),
            tuple(map(float, quantiles)),
            float((apart**3).mean() / deviation**3) if deviation > 0 else 0.0,
            float(is_far.mean()) if reach > 0 else 0.0,
            "" if advice is None else str(Message(advice.seen, ": ", advice.remedy)),
        )


class _Others:
    """What is known of a column that holds no numbers."""

    def __init__(self) -> None:
        self.count = 0
        self.kind = ""
        self.lower: Any = None
        self.upper: Any = None
        self.distinct = DistinctCounter()

    def add(self, values: Any) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if _is_text(values.type):
            # CSV files have no other way to say that a text is missing.
            values = pc.if_else(pc.equal(values, ""), None, values)
        self.count += len(values) - values.null_count
        is_time = pa.types.is_temporal(values.type)
        self.kind = "dates" if is_time else _kind_of_type(values.type)
        if self.count == 0 or pa.types.is_nested(values.type):
            return
        known = pc.unique(values.combine_chunks() if hasattr(values, "chunks") else values)
        known = known.drop_null()
        if is_time and len(known):
            ends = pc.min_max(known).as_py()
            self.lower = ends["min"] if self.lower is None else min(self.lower, ends["min"])
            self.upper = ends["max"] if self.upper is None else max(self.upper, ends["max"])
        self.distinct.add(hash_texts([str(value) for value in known.to_pylist()]))

    def describe(self, name: str, n_rows: int) -> ColumnDescription:
        missing = 1 - self.count / n_rows if n_rows else 0.0
        return ColumnDescription(
            name,
            self.kind,
            missing,
            # An estimate beyond 1024, which may be above the number of rows.
            min(self.distinct.count, self.count),
            None if self.lower is None else str(self.lower),
            None if self.upper is None else str(self.upper),
            advice="it holds no numbers",
        )


def _is_text(kind: Any) -> bool:
    from ckm._sources.arrow import describe_type

    return describe_type(kind) == "text"


def _kind_of_type(kind: Any) -> str:
    from ckm._sources.arrow import describe_type

    if str(kind).startswith("dictionary"):
        return "text"
    return describe_type(kind) or "numbers"
