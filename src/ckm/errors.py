"""The errors and warnings of the library.

Each message is a sentence that states what was found and what to do about it. Every error derives
from `CkmError` and from the built-in exception that fits it, such as ValueError or OSError. Every
warning derives from UserWarning.
"""

from ckm._messages import Argument, Aside, Message, Piece


class CkmError(Exception):
    """Base class of the errors that the library raises on purpose.

    Parameters
    ----------
    *parts : str, Argument or Message
        The pieces of the message. An `Argument` names an argument of the library; the command line
        shows its own option instead.

    Attributes
    ----------
    message : Message
        The message, which remembers its pieces.

    Examples
    --------
    >>> import ckm
    >>> try:
    ...     ckm.merge([])
    ... except ckm.errors.CkmError as error:
    ...     print(error)
    There is nothing to merge; give at least one sketch.
    """

    def __init__(self, *parts: Piece | Message) -> None:
        self.message = Message(*parts)
        super().__init__(self.message)


class DataError(CkmError, ValueError):
    """The rows cannot be used: they are not numeric, not two-dimensional, or too few.

    Examples
    --------
    >>> import ckm
    >>> ckm.Sketch.empty(ckm.draw_frequencies(10, 2)).mean
    Traceback (most recent call last):
    ckm.errors.DataError: A sketch of zero rows has no mean; add sketches of some rows to it first.
    """


class NonFiniteError(DataError):
    """A value is missing (NaN), infinite, or too large for float32.

    Kernels raise it with the position inside their block. It is raised again with the position in
    the data.

    Parameters
    ----------
    row : int
        The row of the value, counted from zero; within its file if `file` is given.
    column : int
        Its column, counted from zero.
    value : float
        The value.
    name : str, optional
        The name of the column.
    file : str, optional
        The name of the file.

    Examples
    --------
    >>> import numpy as np
    >>> import ckm
    >>> try:
    ...     ckm.sketch(np.array([[1.0, 2.0], [3.0, np.inf]]), sketch_size=5, scale=1.0)
    ... except ckm.errors.NonFiniteError as error:
    ...     print(error)
    ...     print((error.row, error.column, error.value))
    Row 1, column 1 holds inf (infinity); drop or clip such rows first.
    (1, 1, inf)
    """

    def __init__(
        self, row: int, column: int, value: float, name: str | None = None, file: str | None = None
    ) -> None:
        self.row = row
        self.column = column
        self.value = value
        self.name = name
        self.file = file
        super().__init__(f"{self.place()} holds ", self._reason())

    def place(self) -> str:
        """Describe the position of the value, as in "Row 3, column 'a' of data.csv".

        Returns
        -------
        str
            Row and column, and the file if there is one.
        """
        column = self.column if self.name is None else repr(self.name)
        place = f"Row {self.row}, column {column}"
        return place if self.file is None else f"{place} of {self.file}"

    def placed(
        self, row: int, columns: tuple[str, ...] | None, file: str | None = None
    ) -> "NonFiniteError":
        """Make the same error at another position.

        Parameters
        ----------
        row : int
            The row in the data, or in `file`.
        columns : tuple of str or None
            The names of all columns.
        file : str, optional
            The name of the file.

        Returns
        -------
        NonFiniteError
            The error to raise instead.
        """
        name = None if columns is None else columns[self.column]
        return NonFiniteError(row, self.column, self.value, name, file)

    def _reason(self) -> Message:
        """What is wrong with the value, and the remedy."""
        if self.value != self.value:
            return Message(
                "NaN (a missing value); drop or fill such rows first, or use ",
                Argument("nan", "drop"),
                Aside(" (of ckm.sketch, CompressiveKMeans and Solution.predict)"),
                ".",
            )
        if self.value in (float("inf"), float("-inf")):
            return Message(f"{self.value} (infinity); drop or clip such rows first.")
        return Message(
            f"{self.value:g}, which overflows float32 once centred; "
            f"rescale the data, or drop such rows."
        )

    def __reduce__(self) -> tuple[type, tuple[int, int, float, str | None, str | None]]:
        return type(self), (self.row, self.column, self.value, self.name, self.file)


class ParameterError(CkmError, ValueError):
    """An argument is out of range or contradicts another one.

    Examples
    --------
    >>> import ckm
    >>> ckm.draw_frequencies(0, 2)
    Traceback (most recent call last):
    ckm.errors.ParameterError: m must be a whole number, at least 1; got 0.
    """


class MissingPackageError(CkmError, ImportError):
    """A package that is not installed is needed, for example to read a kind of file.

    Examples
    --------
    >>> import ckm
    >>> issubclass(ckm.errors.MissingPackageError, ImportError)
    True
    """


class MismatchError(CkmError, ValueError):
    """Two things cannot be combined: they have different frequencies or columns.

    Examples
    --------
    >>> import ckm
    >>> a = ckm.Sketch.empty(ckm.draw_frequencies(10, 2, seed=0))
    >>> b = ckm.Sketch.empty(ckm.draw_frequencies(10, 2, seed=1))
    >>> a + b  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ckm.errors.MismatchError: These sketches use different frequencies (...: seeds 0 and 1) ...
    """


class SketchFileError(CkmError, ValueError):
    """A file is not a sketch, was altered or truncated, or was written by a later version.

    Examples
    --------
    >>> import os, tempfile
    >>> import ckm
    >>> name = os.path.join(tempfile.mkdtemp(), "s.ckm")
    >>> with open(name, "w") as file:
    ...     _ = file.write("not a sketch")
    >>> ckm.load(name)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ckm.errors.SketchFileError: ...s.ckm is not a sketch; make one from the rows with ...
    """


class CheckpointError(CkmError, ValueError):
    """A checkpoint is damaged, or the files that it belongs to have changed.

    Examples
    --------
    >>> import ckm
    >>> issubclass(ckm.errors.CheckpointError, ValueError)
    True
    """


class LedgerError(CkmError, ValueError):
    """A ledger of private releases is damaged, so that what was spent is not known.

    Examples
    --------
    >>> import ckm
    >>> issubclass(ckm.errors.LedgerError, ValueError)
    True
    """


class InputFileError(CkmError, OSError):
    """A data file cannot be read.

    Examples
    --------
    >>> import ckm
    >>> issubclass(ckm.errors.InputFileError, OSError)
    True
    """


class MissingFileError(InputFileError, FileNotFoundError):
    """There is no file of that name, or none that matches the pattern.

    Examples
    --------
    >>> import ckm
    >>> ckm.load("none.ckm")
    Traceback (most recent call last):
    ckm.errors.MissingFileError: There is no file none.ckm; check the name.
    """


class OutputError(CkmError, OSError):
    """A result cannot be written to the given place.

    Examples
    --------
    >>> import ckm
    >>> ckm.Sketch.empty(ckm.draw_frequencies(10, 2)).save("no/s.ckm")
    Traceback (most recent call last):
    ckm.errors.OutputError: Cannot write no/s.ckm: the folder no does not exist; make it first.
    """


class EngineError(CkmError, RuntimeError):
    """Dask, Spark or Ray lost so many workers that it gave up.

    No partial result is returned. A worker that the engine could replace is no error.

    Examples
    --------
    >>> import ckm
    >>> issubclass(ckm.errors.EngineError, RuntimeError)
    True
    """


class PhaseWarning(UserWarning):
    """Phases are too large for float32 to resolve: the sketch carries little information.

    Some rows are very far from the others, or `scale` is very small.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import ckm
    >>> X = np.array([[0.0], [1.0], [1e12]])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     s = ckm.sketch(X, sketch_size=5, scale=1.0, random_state=0)
    >>> caught[0].category.__name__
    'PhaseWarning'
    """


class SmallSketchWarning(UserWarning):
    """The sketch has few frequencies for this many clusters, so that centroids may be inaccurate.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> warnings.simplefilter("error", ckm.errors.SmallSketchWarning)  # turn it into an error
    """


class CellsWarning(UserWarning):
    """Sketches of which only some have cells were combined, so that the result has none.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> import numpy as np
    >>> a = ckm.sketch(np.eye(3), sketch_size=5, scale=1.0, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     s = a + a.without_cells()
    >>> caught[0].category.__name__
    'CellsWarning'
    """


class ScaleWarning(UserWarning):
    """The scale was assumed, as there were no rows to estimate it from.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> import numpy as np
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     s = ckm.sketch(np.empty((0, 2)), sketch_size=5)
    >>> caught[0].category.__name__
    'ScaleWarning'
    """


class ClustersWarning(UserWarning):
    """The centroids may be wrong: some clusters may be missed, merged or empty.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> warnings.simplefilter("error", ckm.errors.ClustersWarning)  # turn it into an error
    """


class AdviceWarning(UserWarning):
    """A table has a column that should hardly be clustered, such as an id.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> warnings.simplefilter("ignore", ckm.errors.AdviceWarning)  # it is meant so
    """


class ColumnsWarning(UserWarning):
    """Columns were left out: those that are not numeric, or an id that numbers the rows.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> warnings.simplefilter("ignore", ckm.errors.ColumnsWarning)  # it is expected
    """


class MissingRowsWarning(UserWarning):
    """Rows with missing values were left out, as ``nan="drop"`` requests, or their missing values
    were filled in, as ``nan="impute"`` does.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import ckm
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ckm.errors.MissingRowsWarning)  # it is expected
    ...     s = ckm.sketch(X, sketch_size=5, scale=1.0, nan="drop")
    >>> s.count
    2
    """


class HeadWarning(UserWarning):
    """Scale and origin were estimated from the first rows of data that can be read only once.

    Examples
    --------
    >>> import warnings
    >>> import ckm
    >>> warnings.simplefilter("ignore", ckm.errors.HeadWarning)  # the rows are in random order
    """
