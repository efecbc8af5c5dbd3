"""Lines of CSV: blocks of whole ones from any stream of bytes, what their columns hold, and their
numbers.
"""

import csv
import io
import logging
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv

from ckm._sources.arrow import ERRORS, describe_schema, to_batch, unreadable
from ckm._sources.columns import ColumnChoice
from ckm._sources.streaming import Batch
from ckm.errors import InputFileError

BLOCK = 4 * 2**20  # bytes
_FIRST = 2**20  # bytes that types are inferred from
_PARSED = 2**20  # bytes that a thread parses at a time
_PATIENCE = 8  # blocks after which a quote that is never closed is taken for a letter
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of some files
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # besides the comma

_log = logging.getLogger(__name__)


class Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


class Dialect(NamedTuple):
    """What stands between fields, and before decimals; whether the first line has names; how many
    fields it has.
    """

    delimiter: str = ","
    decimal: str = "."
    named: bool = True
    width: int = 1


class Layout(NamedTuple):
    """What a CSV's first lines tell: names and types of columns, the bytes before the first row,
    and those of a row (mean and least; zero and one where there is none).
    """

    names: list[str]
    types: dict[str, Any]
    held: list[tuple[str, str | None]]
    header: int
    mean: int
    least: int
    dialect: Dialect = Dialect()


def layout_of(file: Readable, where: str, delimiter: str | None = None) -> Layout:
    """Read the first block of a file, and see."""
    return read_layout(next(lines(file, _FIRST, where), b""), where, delimiter)


def read_layout(block: bytes, where: str, delimiter: str | None = None) -> Layout:
    """What the first lines tell. A first line of numbers is a row, not a header: columns are then
    called x0, x1, ...
    """
    first, delimiter = block[: after_line(block)] or block, delimiter or delimiter_of(block)
    try:
        fields = next(
            csv.reader([first.removeprefix(_MARK).decode().rstrip("\r\n")], delimiter=delimiter), []
        )
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputFileError(
            f"Cannot read {where}: its first line is not CSV in utf-8 ({error}); write it again in utf-8."
        ) from error
    nameless = all(_is_number(field, delimiter) for field in fields)
    names = [f"x{i}" for i in range(len(fields))] if nameless else [name.strip() for name in fields]
    header = (len(_MARK) if block.startswith(_MARK) else 0) if nameless else len(first)
    body, dialect = block[header:], Dialect(delimiter, named=not nameless, width=len(names))
    try:
        table, dialect = _first_rows(body, names, dialect)
    except ERRORS as error:
        raise _uneven(body, dialect, where) or unreadable(error, where) from error
    if delimiter != ",":
        _log.info(
            "%s has %s between fields, and %r before decimals",
            where,
            _DELIMITERS[delimiter],
            dialect.decimal,
        )
    # Whole-number columns may turn out to hold fractions further down.
    types = {
        field.name: pa.bool_() if pa.types.is_boolean(field.type) else pa.float64()
        for field in table.schema
    }
    sizes = [len(line) + 1 for line in body.splitlines() if line]
    return Layout(
        names,
        types,
        _held(table),
        header,
        sum(sizes) // max(1, len(sizes)),
        min(sizes, default=1),
        dialect,
    )


def _first_rows(body: bytes, names: list[str], dialect: Dialect) -> tuple[Any, Dialect]:
    """A table of known types. Where the comma is free, it may stand before decimals: what makes
    more columns numbers is believed.
    """
    if not body.strip():
        return pa.Table.from_arrays([pa.nulls(0)] * len(names), names=names), dialect
    dialects = [
        dialect._replace(decimal=mark) for mark in ("." if dialect.delimiter == "," else ".,")
    ]
    found = [(_read(body, names, dialect, {}), dialect) for dialect in dialects]
    return max(
        found, key=lambda pair: sum(holds is None for _, holds in describe_schema(pair[0].schema))
    )


def _held(table: Any) -> list[tuple[str, str | None]]:
    """What columns hold, with what a person may not expect: text among numbers, or several columns
    in one.
    """
    found = list[tuple[str, str | None]]()
    for (name, holds), column in zip(describe_schema(table.schema), table.columns, strict=True):
        if holds == "text":
            holds += _example(column)
        if holds is not None and table.num_columns == 1 and " " in name:
            holds += ", without a comma, semicolon, tab or | between fields"
        found.append((name, holds))
    return found


def _example(column: Any) -> str:
    """The first text among what could be numbers, as in `1,000` or `-`; nothing where it is plain
    text from the first row on.
    """
    values = (value for chunk in column.chunks for value in chunk)
    row, text = next(
        (
            (i, str(value))
            for i, value in enumerate(values)
            if value.is_valid and not _is_number(str(value), ",")
        ),
        (0, ""),
    )
    return f", such as {text[:20]!r}" if row or any(map(str.isdigit, text)) else ""


def delimiter_of(block: bytes) -> str:
    r"""A comma; unless another mark parts the first two lines into equally many fields, and the
    comma does not, or stands before decimals.

    >>> delimiter_of(b"a,b\n1,2\n"), delimiter_of(b"a;b\n1,5;2,5\n"), delimiter_of(b"1,5;2,5\n1,0;3,5\n")
    (',', ';', ';')
    """
    text = block[:_FIRST].removeprefix(_MARK).decode(errors="replace")
    try:
        first = {
            mark: list(
                islice(filter(None, csv.reader(io.StringIO(text, newline=None), delimiter=mark)), 2)
            )
            for mark in (",", *_DELIMITERS)
        }
    except csv.Error:
        return ","
    wide = {
        mark: rows[0]
        for mark, rows in first.items()
        if rows and len(rows[0]) > 1 and len(rows[0]) == len(rows[-1])
    }
    others = (
        mark
        for mark in wide
        if mark != "," and ("," not in wide or all(_is_number(field, mark) for field in wide[mark]))
    )
    return next(others, ",")


def lines(file: Readable, size: int, where: str) -> Iterator[bytes]:
    """Blocks of about `size` bytes that end with a line. A line break within quotes ends none."""
    held, quoted = list[bytes](), False
    while piece := _bytes_of(file, size, where):
        end = piece.rfind(b"\n") + 1 or piece.rfind(b"\r") + 1
        within = quoted ^ bool(piece.count(b'"', 0, end) % 2)
        if end and (not within or len(held) > _PATIENCE):
            yield b"".join([*held, piece[:end]])
            held, quoted = [piece[end:]], bool(piece.count(b'"', end) % 2)
        else:
            held.append(piece)
            quoted ^= bool(piece.count(b'"') % 2)
    if any(held):
        yield b"".join(held)


def after_line(block: bytes) -> int:
    """Where the line after the first one begins; zero where there is none."""
    return block.find(b"\n") + 1 or block.find(b"\r") + 1  # as very old files end their lines


def runs_of(block: bytes, size: int) -> Iterator[bytes]:
    """A block cut into runs of whole lines, of about `size` bytes."""
    low = 0
    while low < len(block):
        high = block.find(b"\n", min(low + size, len(block)) - 1) + 1 or len(block)
        yield block[low:high]
        low = high


def parse(block: bytes, layout: Layout, choice: ColumnChoice, where: str, row: int = 0) -> Batch:
    """The chosen columns of a block of lines, of which the first is row number `row`."""
    convert = {
        "column_types": {name: layout.types[name] for name in choice.all},
        "include_columns": choice.all,
    }
    try:
        table = (
            _read(block, layout.names, layout.dialect, convert)
            if block.strip()
            else _nothing(choice)
        )
    except ERRORS:
        try:  # again in one thread, which knows the row
            table = _read(block, layout.names, layout.dialect, convert, use_threads=False)
        except ERRORS as error:
            raise _uneven(block, layout.dialect, where, row) or unreadable(
                _with_place(error, layout.names, row), where
            ) from error
    return to_batch(table, choice, where, row)


def _read(
    block: bytes,
    names: list[str],
    dialect: Dialect,
    convert: dict[str, Any],
    use_threads: bool = True,
) -> Any:
    options = pa_csv.ReadOptions(
        column_names=names, use_threads=use_threads, block_size=max(_PARSED, len(block) // 4)
    )
    parsing, converting = (
        pa_csv.ParseOptions(delimiter=dialect.delimiter),
        pa_csv.ConvertOptions(decimal_point=dialect.decimal, **convert),
    )
    return pa_csv.read_csv(
        pa.BufferReader(block),
        read_options=options,
        parse_options=parsing,
        convert_options=converting,
    )


def _uneven(block: bytes, dialect: Dialect, where: str, row: int = 0) -> InputFileError | None:
    """Which row has more or fewer fields than the first line, if one does. Its line supposes that a
    row of earlier blocks had one each.
    """
    number = row
    try:
        reader = csv.reader(io.StringIO(block.decode(), newline=None), delimiter=dialect.delimiter)
        for fields in filter(None, reader):
            if len(fields) != dialect.width:
                place = f"row {number} (line {row + dialect.named + reader.line_num}) has {len(fields)} fields"
                remedy = f"mend that line, or put quotes around fields with {dialect.delimiter!r} in them"
                return InputFileError(
                    f"Cannot read {where}: {place} where the first line has {dialect.width}; {remedy}."
                )
            number += 1
    except (csv.Error, UnicodeDecodeError):
        pass
    return None


def _nothing(choice: ColumnChoice) -> Any:
    return pa.table({name: pa.array([], pa.float64()) for name in choice.all})


def _bytes_of(file: Readable, size: int, where: str) -> bytes:
    try:
        return file.read(size)
    except ERRORS as error:
        raise unreadable(error, where) from error


def _with_place(error: Exception, names: list[str], row: int) -> Exception:
    """Arrow counts rows from one in each block, and columns; we count rows from zero, in the file,
    and name columns.
    """
    text = re.sub(r"Row #(\d+)", lambda found: f"row {row + int(found[1]) - 1}", str(error))
    return ValueError(
        re.sub(r"In CSV column #(\d+)", lambda found: f"in column {names[int(found[1])]!r}", text)
    )


def _is_number(text: str, delimiter: str) -> bool:
    try:
        float(text if delimiter == "," else text.replace(",", "."))
    except ValueError:
        return False
    return True
