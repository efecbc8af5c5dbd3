"""Lines of CSV: blocks of whole lines from any stream of bytes, what their columns hold, and their
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

# Bytes from which types are inferred.
_INFERENCE_BYTES = 2**20
# Bytes that a thread parses at a time, at least.
_PARSED_BYTES = 2**20
# Blocks after which a quote that is never closed is taken for a letter.
_MAX_QUOTED_BLOCKS = 8
# The byte-order mark of UTF-8, with which some files begin.
_MARK = b"\xef\xbb\xbf"
# Delimiters besides the comma.
_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}

_log = logging.getLogger(__name__)


class Readable(Protocol):
    """Something that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end."""


class Dialect(NamedTuple):
    """The delimiter between fields, the decimal point, whether the first line has names, and its
    number of fields.
    """

    delimiter: str = ","
    decimal: str = "."
    has_names: bool = True
    width: int = 1


class Layout(NamedTuple):
    """The layout of a CSV file, inferred from its first lines.

    Parameters
    ----------
    names : list of str
        The names of the columns.
    types : dict
        The Arrow type of each column.
    present : list of (str, str or None)
        The columns, each with what it holds: None for numbers.
    header_bytes : int
        Bytes before the first row.
    mean_bytes, min_bytes : int
        Bytes per row; 0 and 1 if there is no row.
    dialect : Dialect
        How fields are written.
    """

    names: list[str]
    types: dict[str, Any]
    present: list[tuple[str, str | None]]
    header_bytes: int
    mean_bytes: int
    min_bytes: int
    dialect: Dialect = Dialect()


def infer_layout(file: Readable, where: str, delimiter: str | None = None) -> Layout:
    """Infer the layout of a file from its first block."""
    first = next(split_lines(file, _INFERENCE_BYTES, where), b"")
    return layout_of_block(first, where, delimiter)


def layout_of_block(block: bytes, where: str, delimiter: str | None = None) -> Layout:
    """Infer the layout from the first lines.

    A first line of numbers is a row, not a header: columns are then called x0, x1, ...
    """
    delimiter = delimiter or delimiter_of(block)
    first = block[: after_line(block)] or block
    fields = _split_fields(first, delimiter, where)
    has_names = not all(_is_number(field, delimiter) for field in fields)
    if has_names:
        names = [name.strip() for name in fields]
        header_bytes = len(first)
    else:
        names = [f"x{i}" for i in range(len(fields))]
        header_bytes = len(_MARK) if block.startswith(_MARK) else 0
    body = block[header_bytes:]
    dialect = Dialect(delimiter, has_names=has_names, width=len(names))
    try:
        table, dialect = _parse_first_rows(body, names, dialect)
    except ERRORS as error:
        raise _uneven(body, dialect, where) or unreadable(error, where) from error
    if delimiter != ",":
        _log.info(
            "%s has %s between fields, and %r before decimals",
            where,
            _DELIMITERS[delimiter],
            dialect.decimal,
        )
    # Columns of integers may turn out to hold fractions further down.
    types = {
        field.name: pa.bool_() if pa.types.is_boolean(field.type) else pa.float64()
        for field in table.schema
    }
    sizes = [len(line) + 1 for line in body.splitlines() if line]
    mean_bytes = sum(sizes) // max(1, len(sizes))
    min_bytes = min(sizes, default=1)
    return Layout(names, types, _describe(table), header_bytes, mean_bytes, min_bytes, dialect)


def _split_fields(line: bytes, delimiter: str, where: str) -> list[str]:
    """The fields of the first line."""
    try:
        text = line.removeprefix(_MARK).decode().rstrip("\r\n")
        return next(csv.reader([text], delimiter=delimiter), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputFileError(
            f"Cannot read {where}: its first line is not CSV in utf-8 ({error}); write it again in "
            f"utf-8."
        ) from error


def _parse_first_rows(body: bytes, names: list[str], dialect: Dialect) -> tuple[Any, Dialect]:
    """Parse the first rows with inferred types, and find the decimal point.

    If the comma is not the delimiter, it may be the decimal point: the one that makes more columns
    numbers is taken.
    """
    if not body.strip():
        return pa.Table.from_arrays([pa.nulls(0)] * len(names), names=names), dialect
    decimals = "." if dialect.delimiter == "," else ".,"
    candidates = [dialect._replace(decimal=decimal) for decimal in decimals]
    parsed = [(_read(body, names, candidate, {}), candidate) for candidate in candidates]
    return max(parsed, key=lambda pair: _count_numeric(pair[0]))


def _count_numeric(table: Any) -> int:
    return sum(holds is None for _, holds in describe_schema(table.schema))


def _describe(table: Any) -> list[tuple[str, str | None]]:
    """Describe what columns hold, with what a user may not expect: text among numbers, or several
    columns in one.
    """
    described = list[tuple[str, str | None]]()
    for (name, holds), column in zip(describe_schema(table.schema), table.columns, strict=True):
        if holds == "text":
            holds += _example(column)
        if holds is not None and table.num_columns == 1 and " " in name:
            holds += ", without a comma, semicolon, tab or | between fields"
        described.append((name, holds))
    return described


def _example(column: Any) -> str:
    """Quote the first text among what could be numbers, such as `1,000` or `-`.

    Empty for a column of plain text from the first row on.
    """
    values = (value for chunk in column.chunks for value in chunk)
    texts = (
        (i, str(value))
        for i, value in enumerate(values)
        if value.is_valid and not _is_number(str(value), ",")
    )
    row, text = next(texts, (0, ""))
    return f", such as {text[:20]!r}" if row or any(map(str.isdigit, text)) else ""


def delimiter_of(block: bytes) -> str:
    r"""Find the delimiter in the first two lines: a comma unless another one fits better.

    Another one fits if it splits both lines into equally many fields, and the comma does not, or is
    a decimal point.

    >>> delimiter_of(b"a,b\n1,2\n"), delimiter_of(b"a;b\n1,5;2,5\n")
    (',', ';')
    >>> delimiter_of(b"1,5;2,5\n1,0;3,5\n")
    ';'
    """
    text = block[:_INFERENCE_BYTES].removeprefix(_MARK).decode(errors="replace")
    # The fields of the first line, for each delimiter that splits two lines into equally many.
    fields = dict[str, list[str]]()
    try:
        for mark in (",", *_DELIMITERS):
            reader = csv.reader(io.StringIO(text, newline=None), delimiter=mark)
            rows = list(islice(filter(None, reader), 2))
            if rows and len(rows[0]) > 1 and len(rows[0]) == len(rows[-1]):
                fields[mark] = rows[0]
    except csv.Error:
        return ","
    for mark, first in fields.items():
        if mark == ",":
            continue
        if "," not in fields or all(_is_number(field, mark) for field in first):
            return mark
    return ","


def split_lines(file: Readable, size: int, where: str, n_before: int = 0) -> Iterator[bytes]:
    """Yield blocks of about `size` bytes that end with a line.

    A line break within quotes does not end a line. `n_before` is the number of bytes in earlier
    blocks: the blocks that follow are those that reading from the beginning would give.
    """
    pieces = list[bytes]()
    if n_before:
        # Reading from the beginning has read up to the next multiple of `size` already, and kept
        # what came after the last line.
        pieces.append(_read_bytes(file, -n_before % size, where))
    is_quoted = bool(b"".join(pieces).count(b'"') % 2)
    while piece := _read_bytes(file, size, where):
        end = piece.rfind(b"\n") + 1 or piece.rfind(b"\r") + 1
        ends_in_quotes = is_quoted ^ bool(piece.count(b'"', 0, end) % 2)
        if end and (not ends_in_quotes or len(pieces) > _MAX_QUOTED_BLOCKS):
            yield b"".join([*pieces, piece[:end]])
            pieces = [piece[end:]]
            is_quoted = bool(piece.count(b'"', end) % 2)
        else:
            pieces.append(piece)
            is_quoted ^= bool(piece.count(b'"') % 2)
    if any(pieces):
        yield b"".join(pieces)


def after_line(block: bytes) -> int:
    """Where the second line begins; zero if there is none."""
    # Very old files end lines with a carriage return.
    return block.find(b"\n") + 1 or block.find(b"\r") + 1


def split_runs(block: bytes, size: int) -> Iterator[bytes]:
    """Cut a block into runs of whole lines of about `size` bytes."""
    low = 0
    while low < len(block):
        high = block.find(b"\n", min(low + size, len(block)) - 1) + 1 or len(block)
        yield block[low:high]
        low = high


def parse(block: bytes, layout: Layout, choice: ColumnChoice, where: str, row: int = 0) -> Batch:
    """Parse the chosen columns of a block of lines, of which the first is row number `row`."""
    convert = {
        "column_types": {name: layout.types[name] for name in choice.all},
        "include_columns": choice.all,
    }
    try:
        if block.strip():
            table = _read(block, layout.names, layout.dialect, convert)
        else:
            table = pa.table({name: pa.array([], pa.float64()) for name in choice.all})
    except ERRORS:
        # Again in one thread, which knows the row.
        try:
            table = _read(block, layout.names, layout.dialect, convert, use_threads=False)
        except ERRORS as error:
            located = _with_place(error, layout.names, row)
            uneven = _uneven(block, layout.dialect, where, row)
            raise uneven or unreadable(located, where) from error
    return to_batch(table, choice, where, row)


def _read(
    block: bytes,
    names: list[str],
    dialect: Dialect,
    convert: dict[str, Any],
    use_threads: bool = True,
) -> Any:
    """Parse a block with Arrow."""
    block_size = max(_PARSED_BYTES, len(block) // 4)
    return pa_csv.read_csv(
        pa.BufferReader(block),
        read_options=pa_csv.ReadOptions(
            column_names=names, use_threads=use_threads, block_size=block_size
        ),
        parse_options=pa_csv.ParseOptions(delimiter=dialect.delimiter),
        convert_options=pa_csv.ConvertOptions(decimal_point=dialect.decimal, **convert),
    )


def _uneven(block: bytes, dialect: Dialect, where: str, row: int = 0) -> InputFileError | None:
    """An error for the first row with more or fewer fields than the first line, if there is one.

    Its line number supposes that each row of earlier blocks had one line.
    """
    number = row
    try:
        reader = csv.reader(io.StringIO(block.decode(), newline=None), delimiter=dialect.delimiter)
        for fields in filter(None, reader):
            if len(fields) != dialect.width:
                line = row + dialect.has_names + reader.line_num
                return InputFileError(
                    f"Cannot read {where}: row {number} (line {line}) has {len(fields)} fields "
                    f"where the first line has {dialect.width}; mend that line, or put quotes "
                    f"around fields with {dialect.delimiter!r} in them."
                )
            number += 1
    except (csv.Error, UnicodeDecodeError):
        pass
    return None


def _read_bytes(file: Readable, size: int, where: str) -> bytes:
    try:
        return file.read(size)
    except ERRORS as error:
        raise unreadable(error, where) from error


def _with_place(error: Exception, names: list[str], row: int) -> Exception:
    """Rewrite the place in an error of Arrow.

    Arrow counts rows from one in each block, and counts columns; we count rows from zero in the
    file, and name columns.
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
