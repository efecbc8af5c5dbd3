"""`Description`: what a table holds, column by column."""

from dataclasses import asdict, dataclass
from typing import Any

from ckm._util.summary import Shown, Summary


@dataclass(frozen=True)
class ColumnDescription:
    """What one column of a table holds.

    Parameters
    ----------
    name : str
        Its name.
    kind : str
        "ordinary", "id", "timestamp", "constant", "code", "boolean", "copy" or "heavy-tailed" for
        numbers; "text", "dates" or the type of other columns.
    missing : float
        The share of rows without a value.
    distinct : int
        The number of different values: exact below 1024, with a standard error of 3 % beyond.
    lower, upper : float, str or None
        The smallest and the largest value; of dates, as text.
    mean, std : float or None
        Mean and standard deviation of numbers.
    quantiles : tuple of float
        The 1, 25, 50, 75 and 99 % quantiles of numbers, from a sample of 8192 rows: their ranks are
        right to about 1 %.
    skewness : float or None
        The skewness of that sample.
    outliers : float or None
        The share of the sample farther from the quartiles than three interquartile ranges.
    advice : str
        Whether and how to use it; empty if nothing speaks against it.
    """

    name: str
    kind: str
    missing: float
    distinct: int
    lower: float | str | None = None
    upper: float | str | None = None
    mean: float | None = None
    std: float | None = None
    quantiles: tuple[float, ...] = ()
    skewness: float | None = None
    outliers: float | None = None
    advice: str = ""


@dataclass(frozen=True)
class Description(Shown):
    """What a table holds, as `ckm.describe` returns it; `print` shows it as a table.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    columns : tuple of ColumnDescription
        Each column, with its kind, missing values, range and quantiles.
    advice : tuple of str
        What to do before the table is clustered, a sentence each.
    arguments : dict
        The same as arguments of `ckm.sketch` and parameters of `CompressiveKMeans`: those of
        `exclude`, `log` and `standardize` that are advised. Not `nan`: what to do about missing
        values is yours to choose, and the advice says so.

    See Also
    --------
    describe : Describes a table in one pass.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import ckm
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"row_id": np.arange(500), "x": rng.normal(size=500)})
    >>> found = ckm.describe(table)
    >>> found.n_rows, [(column.name, column.kind) for column in found.columns]
    (500, [('row_id', 'id'), ('x', 'ordinary')])
    >>> found.arguments
    {'exclude': ['row_id']}
    """

    n_rows: int
    columns: tuple[ColumnDescription, ...]
    advice: tuple[str, ...]
    arguments: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON.

        Returns
        -------
        dict
            One entry for each attribute.

        Examples
        --------
        >>> import pandas as pd
        >>> import ckm
        >>> ckm.describe(pd.DataFrame({"x": [1.0, 2.0]})).to_dict()["n_rows"]
        2
        """
        return asdict(self)

    def summary(self) -> Summary:
        """What is shown of it: a row for each column, and the advice in sentences.

        Returns
        -------
        Summary
            Title, table and sentences.
        """
        rows = tuple(_cells(column) for column in self.columns)
        title = f"{self.n_rows:,} rows of {len(self.columns)} columns"
        return Summary(title, _HEADER, rows, self.advice)


# Whole numbers between these are shown with all their digits.
LARGE_NUMBER = 1e5
LARGEST_WHOLE_NUMBER = 1e15
_HEADER = (
    "column",
    "kind",
    "missing",
    "distinct",
    "lower",
    "25 %",
    "median",
    "75 %",
    "upper",
    "std",
    "skewness",
    "outliers",
)


def _cells(column: ColumnDescription) -> tuple[str, ...]:
    middle = column.quantiles[1:4] or (None, None, None)
    return (
        column.name,
        column.kind,
        f"{column.missing:.1%}" if column.missing else "",
        f"{column.distinct:,}",
        _number(column.lower),
        *map(_number, middle),
        _number(column.upper),
        _number(column.std),
        _number(column.skewness, 2),
        f"{column.outliers:.1%}" if column.outliers else "",
    )


def _number(value: float | str | None, digits: int = 5) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if LARGE_NUMBER <= abs(value) < LARGEST_WHOLE_NUMBER and value == int(value):
        # An id or a count, of which the last digits matter.
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"
