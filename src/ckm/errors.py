"""Named errors. Each message is a sentence that says what was seen and what to do about it.

An argument is named as `n_clusters=` where all who can meet the message have it, and else with the
function that takes it: `ckm.sketch(..., columns=[...])` is open to those who began with the
estimator, too. The command line puts its options in their place.
"""

from ckm._messages import Message, Piece


class CkmError(Exception):
    """Base of every error that `ckm` raises on purpose.

    Parameters
    ----------
    *parts : str, Argument or Message
        The pieces of the message, see `ckm._messages`. The command line shows it without a
        traceback, and with its own names for the arguments.
    """

    def __init__(self, *parts: Piece | Message) -> None:
        self.message = Message(*parts)
        super().__init__(self.message)


class DataError(CkmError, ValueError):
    """The rows cannot be used: not finite, not numeric, not two-dimensional, too few."""


class NonFiniteError(DataError):
    """A value is missing, infinite, or too large for float32.

    Kernels raise it with a position inside their block; the runner raises it again with the
    position in the data.
    """

    def __init__(
        self, row: int, column: int, value: float, name: str | None = None, file: str | None = None
    ) -> None:
        self.row, self.column, self.value, self.name, self.file = row, column, value, name, file
        super().__init__(f"{self.place()} holds {self.reason()}")

    def place(self) -> str:
        """Where the value is, in words; rows are counted from zero, in each file."""
        column = self.column if self.name is None else repr(self.name)
        return f"Row {self.row}, column {column}{'' if self.file is None else f' of {self.file}'}"

    def reason(self) -> str:
        """What is wrong with the value, and the remedy."""
        if self.value != self.value:
            return "NaN (a missing value); drop or fill such rows first; ckm.sketch and Solution.predict take nan='drop'."
        if self.value in (float("inf"), float("-inf")):
            return f"{self.value} (infinity); drop or clip such rows first."
        return f"{self.value:g}, which overflows float32 once centred; rescale the data, or drop such rows."

    def placed(
        self, row: int, columns: tuple[str, ...] | None, file: str | None = None
    ) -> "NonFiniteError":
        """The same finding, in that row (of that file), with its column's name where there is one."""
        return NonFiniteError(
            row, self.column, self.value, None if columns is None else columns[self.column], file
        )

    def __reduce__(self) -> tuple[type, tuple[int, int, float, str | None, str | None]]:
        return type(self), (self.row, self.column, self.value, self.name, self.file)


class ParameterError(CkmError, ValueError):
    """An argument is out of range or contradicts another."""


class MissingPackageError(CkmError, ImportError):
    """Something that is not installed is needed to read this."""


class MismatchError(CkmError, ValueError):
    """Two things do not belong together: other frequencies, other columns."""


class SketchFileError(CkmError, ValueError):
    """A file is not a sketch this version can trust: foreign, altered, truncated, or from the
    future.
    """


class CheckpointError(CkmError, ValueError):
    """A checkpoint is damaged, or the files it belongs to are not what they were."""


class InputFileError(CkmError, OSError):
    """A data file cannot be read."""


class MissingFileError(InputFileError, FileNotFoundError):
    """No file answers to that name or pattern."""


class OutputError(CkmError, OSError):
    """The result cannot be written where it was asked for."""


class PhaseWarning(UserWarning):
    """Phases are so large that float32 cannot tell them apart: the sketch carries little
    information.
    """


class SmallSketchWarning(UserWarning):
    """The sketch has so few frequencies for this many clusters that centroids may be far off."""


class ScaleWarning(UserWarning):
    """The scale could not be estimated from rows and was assumed."""


class ClustersWarning(UserWarning):
    """Centroids may not be what was asked for: some are missed, merged or without weight."""


class ColumnsWarning(UserWarning):
    """Columns that hold no numbers were left out."""


class MissingRowsWarning(UserWarning):
    """Rows with missing values were left out, as asked."""


class HeadWarning(UserWarning):
    """Scale and origin come from the first rows of data that can be read once only."""
