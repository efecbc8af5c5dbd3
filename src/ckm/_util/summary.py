"""Results that show themselves: a table of text where they are printed, HTML in a notebook."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ckm._util.text import visible


@dataclass(frozen=True)
class Summary:
    """A title, a table and some sentences.

    Parameters
    ----------
    title : str
        One line above the table.
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

    def text(self) -> str:
        """The summary in lines: the first column to the left, numbers to the right.

        >>> print(Summary("Two towns", ("town", "share"), (("A", "0.25"), ("B", "0.75"))).text())
        Two towns
        <BLANKLINE>
        town  share
        A      0.25
        B      0.75
        """
        blocks = [visible(self.title)]
        if self.rows:
            blocks.append("\n".join(_lines((self.header, *self.rows))))
        if self.notes:
            blocks.append("\n".join(visible(note) for note in self.notes))
        return "\n\n".join(blocks)

    def html(self) -> str:
        """The summary as HTML that needs nothing from outside."""
        parts = [f"<div><p><strong>{escape(self.title)}</strong></p>"]
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
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary().html()


def _lines(rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *aligned]).rstrip())
    return lines


def _html_cells(row: Sequence[str]) -> str:
    first, *others = (escape(cell) for cell in row)
    return f'<th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in others)
