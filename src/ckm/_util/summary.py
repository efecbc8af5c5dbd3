"""Results that show themselves: a table of text where they are printed, HTML in a notebook."""

import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ckm._util.text import visible
from ckm.errors import MissingPackageError

# Spaces between two columns of a table.
_GAP = 2


@dataclass(frozen=True)
class Summary:
    """A title, a table and some sentences.

    Parameters
    ----------
    title : str
        One line above the table; empty for none.
    header : tuple of str
        The names of the columns.
    rows : tuple of tuples of str
        The cells, as they are shown.
    notes : tuple of str
        Sentences below the table.
    """

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()

    def text(self, width: int | None = None) -> str:
        """The summary in lines: the first column to the left, numbers to the right.

        A table of more than `width` characters is transposed if that makes it fit, or else shown in
        several pieces of some columns each. No number is cut.

        >>> print(Summary("Two towns", ("town", "share"), (("A", "0.25"), ("B", "0.75"))).text())
        Two towns
        <BLANKLINE>
        town  share
        A      0.25
        B      0.75
        >>> wide = Summary("One town", ("town", "people", "houses"), (("A", "1e+07", "2e+06"),))
        >>> print(wide.text(width=14))
        One town
        <BLANKLINE>
        town        A
        people  1e+07
        houses  2e+06
        """
        blocks = [visible(self.title)] if self.title else []
        if self.rows:
            blocks.extend("\n".join(_lines(piece)) for piece in self._pieces(width))
        if self.notes:
            blocks.append("\n".join(visible(note) for note in self.notes))
        return "\n\n".join(blocks)

    def _pieces(self, width: int | None) -> Iterator[Sequence[Sequence[str]]]:
        """The table, or pieces of it that fit in `width`."""
        rows = (self.header, *self.rows)
        turned = list(zip(*rows, strict=True))
        if width is None or _table_width(rows) <= width:
            yield rows
        elif _table_width(turned) <= width:
            yield turned
        else:
            yield from _cut(rows, width)

    def html(self) -> str:
        """The summary as HTML that needs nothing from outside."""
        parts = ["<div>"]
        if self.title:
            parts.append(f"<p><strong>{escape(self.title)}</strong></p>")
        if self.rows:
            head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.header)
            body = "".join(f"<tr>{_html_cells(row)}</tr>" for row in self.rows)
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts.extend(f"<p>{escape(note)}</p>" for note in self.notes)
        return "".join(parts) + "</div>"


class Shown(ABC):
    """A result that `print` shows as a table, and a notebook as HTML."""

    @abstractmethod
    def summary(self) -> Summary:
        """What is shown of it."""

    def __str__(self) -> str:
        return self.summary().text(terminal_width())

    def _repr_html_(self) -> str:
        return self.summary().html()


def terminal_width() -> int | None:
    """The characters per line of the terminal; None if standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def missing_plots(error: ModuleNotFoundError) -> MissingPackageError:
    """The error for a plot whose package is not installed."""
    return MissingPackageError(
        f"A plot needs {error.name}, which is not installed: pip install 'compressive-kmeans[plot]'"
    )


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(visible(cell)) for cell in column) for column in zip(*rows, strict=True)]


def _table_width(rows: Sequence[Sequence[str]]) -> int:
    widths = _widths(rows)
    return sum(widths) + _GAP * (len(widths) - 1)


def _cut(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[list[str]]]:
    """Pieces of some columns each, all of them with the first column."""
    widths = _widths(rows)
    piece = list[int]()
    used = widths[0]
    for i, needed in enumerate(widths[1:], 1):
        if piece and used + _GAP + needed > width:
            yield [[row[0], *(row[j] for j in piece)] for row in rows]
            piece = []
            used = widths[0]
        piece.append(i)
        used += _GAP + needed
    yield [[row[0], *(row[j] for j in piece)] for row in rows]


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = _widths(cells)
    lines = []
    for first, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append((" " * _GAP).join([first.ljust(widths[0]), *aligned]).rstrip())
    return lines


def _html_cells(row: Sequence[str]) -> str:
    first, *others = (escape(cell) for cell in row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)
