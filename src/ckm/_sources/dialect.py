"""How a CSV file is written: its delimiter, and whether its first line has names."""

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

# The byte-order mark of UTF-8, with which some files begin.
MARK = b"\xef\xbb\xbf"
# Delimiters besides the comma.
DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# Bytes in which the delimiter is looked for.
_SEARCHED_BYTES = 2**20
# Rows that are compared with the first line.
_COMPARED_ROWS = 1000
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")


class Dialect(NamedTuple):
    """The delimiter between fields, the decimal point, whether the first line has names, and its
    number of fields.
    """

    delimiter: str = ","
    decimal: str = "."
    has_names: bool = True
    width: int = 1


class FirstLine(NamedTuple):
    """Whether the first line has names, and why that is not certain; None if it is."""

    has_names: bool
    doubt: str | None = None


def delimiter_of(block: bytes) -> str:
    r"""Find the delimiter in the first two lines: a comma unless another one fits better.

    Another one fits if it splits both lines into equally many fields, and the comma does not, or is
    a decimal point.

    >>> delimiter_of(b"a,b\n1,2\n"), delimiter_of(b"a;b\n1,5;2,5\n")
    (',', ';')
    >>> delimiter_of(b"1,5;2,5\n1,0;3,5\n")
    ';'
    """
    text = block[:_SEARCHED_BYTES].removeprefix(MARK).decode(errors="replace")
    # The fields of the first line, for each delimiter that splits two lines into equally many.
    fields = dict[str, list[str]]()
    try:
        for mark in (",", *DELIMITERS):
            rows = _rows(text, mark, 2)
            if rows and len(rows[0]) > 1 and len(rows[0]) == len(rows[-1]):
                fields[mark] = rows[0]
    except csv.Error:
        return ","
    for mark, first in fields.items():
        if mark == ",":
            continue
        if "," not in fields or all(is_number(field, mark) for field in first):
            return mark
    return ","


def judge_first_line(line: bytes, fields: Sequence[str], body: bytes, delimiter: str) -> FirstLine:
    r"""Decide whether the `fields` of the first `line` are names, from the lines of `body` too.

    A line of numbers is a row, with two exceptions: quoted numbers above numbers without quotes,
    and different integers above numbers that all have decimals, such as years above measurements.

    >>> judge_first_line(b'"2019","2020"\n', ["2019", "2020"], b"1,2\n", ",").has_names
    True
    >>> judge_first_line(b"2019,2020\n", ["2019", "2020"], b"1.5,2.5\n", ",").has_names
    True
    >>> judge_first_line(b"2019,2020\n", ["2019", "2020"], b"1,2.5\n", ",").has_names
    False
    """
    if not all(is_number(field, delimiter) for field in fields):
        return FirstLine(has_names=not _has_missing_values(fields, delimiter))
    try:
        rows = _rows(body.decode(errors="replace"), delimiter, _COMPARED_ROWS)
    except csv.Error:
        rows = []
    if not rows:
        return FirstLine(has_names=False)
    if _is_quoted(line, fields):
        second = body.lstrip(b"\r\n").split(b"\n", 1)[0]
        return FirstLine(has_names=not _is_quoted(second, rows[0]))
    if not all(_INTEGER.fullmatch(field) for field in fields) or len(set(fields)) < len(fields):
        return FirstLine(has_names=False)
    if not any(_INTEGER.fullmatch(field) for row in rows for field in row):
        return FirstLine(True, "all its fields are integers, and no number below it is")
    if len(fields) > 1 and [int(field) for field in fields] == list(range(len(fields))):
        return FirstLine(False, "the lines below it hold integers too")
    return FirstLine(has_names=False)


def is_number(text: str, delimiter: str) -> bool:
    """Whether a field is a number, perhaps with a decimal comma."""
    try:
        float(text if delimiter == "," else text.replace(",", "."))
    except ValueError:
        return False
    return True


def _rows(text: str, delimiter: str, count: int) -> list[list[str]]:
    """The fields of the first `count` lines that are not blank."""
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)
    return list(islice(filter(None, reader), count))


def _is_quoted(line: bytes, fields: Sequence[str]) -> bool:
    """Whether each field is quoted, if all of them are numbers: none contains a quote."""
    return line.count(b'"') == 2 * len(fields)


def _has_missing_values(fields: Sequence[str], delimiter: str) -> bool:
    """Whether these are numbers with decimals, and empty fields: a row with missing values.

    Integers with an empty field are names, as pandas writes them beside an index without a name.
    """
    given = [field for field in fields if field.strip()]
    if not all(is_number(field, delimiter) for field in given):
        return False
    return not all(_INTEGER.fullmatch(field) for field in given)
