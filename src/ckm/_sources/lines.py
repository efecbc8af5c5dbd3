"""Lines of CSV: what their columns hold, and their numbers."""

import csv
import io
import logging
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as pa_csv

from ckm._sources.arrow import ERRORS, describe_schema, describe_type, to_batch
from ckm._sources.column_request import AlmostNumbers, ColumnChoice, Dates
from ckm._sources.dialect import (
    DELIMITERS,
    MARK,
    Dialect,
    delimiter_of,
    is_number,
    judge_first_line,
)
from ckm._sources.failures import unreadable
from ckm._sources.records import Readable, first_record_end, split_records
from ckm._sources.streaming import Batch
from ckm._util.warn import warn_user
from ckm.errors import ColumnsWarning, InputFileError

# Bytes from which types are inferred.
_INFERENCE_BYTES = 2**20
# Bytes that a thread parses at a time, at least.
_PARSED_BYTES = 2**20
# Share of the values of a column that may be text in what is meant to be numbers; letters of such
# a text that are shown.
_MAX_TEXT_SHARE = 0.1
_SHOWN_TEXT = 20
# Letters of the first line that a warning shows.
_SHOWN_LETTERS = 40

_log = logging.getLogger(__name__)


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
    doubt : str or None
        Why it is not certain whether the first line has names; None if it is.
    """

    names: list[str]
    types: dict[str, Any]
    present: list[tuple[str, str | None]]
    header_bytes: int
    mean_bytes: int
    min_bytes: int
    dialect: Dialect = Dialect()
    doubt: str | None = None

    def warn_of_doubt(self, where: str) -> None:
        """Warn if it is not certain whether the first line has names."""
        if self.doubt is None:
            return
        if self.dialect.has_names:
            taken = "taken for the names of columns"
            remedy = "if it is a row, write it with decimals"
            line = self.dialect.delimiter.join(self.names)
        else:
            taken = "taken for a row"
            remedy = "if it has the names of columns, put quotes around them"
            line = self.dialect.delimiter.join(map(str, range(len(self.names))))
        warn_user(
            f"The first line of {where} ({_shortened(line)}) is {taken}, since {self.doubt}; "
            f"{remedy}.",
            ColumnsWarning,
        )


def infer_layout(
    file: Readable, where: str, max_bytes: int, delimiter: str | None = None
) -> Layout:
    """Infer the layout of a file, whose lines have at most `max_bytes`, from its first block."""
    blocks = split_records(file, _INFERENCE_BYTES, where, max_bytes, delimiter)
    return layout_of_block(next(blocks, b""), where, delimiter)


def layout_of_block(block: bytes, where: str, delimiter: str | None = None) -> Layout:
    """Infer the layout from the first lines.

    A first line of numbers is a row, not a header, with the exceptions of `judge_first_line`:
    columns are then called x0, x1, ...
    """
    delimiter = delimiter or delimiter_of(block)
    first = block[: first_record_end(block, delimiter)] or block
    fields = _split_fields(first, delimiter, where)
    judged = judge_first_line(first, fields, block[len(first) :], delimiter)
    has_names = judged.has_names
    if has_names:
        names = [name.strip() for name in fields]
        header_bytes = len(first)
    else:
        names = [f"x{i}" for i in range(len(fields))]
        header_bytes = len(MARK) if block.startswith(MARK) else 0
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
            DELIMITERS[delimiter],
            dialect.decimal,
        )
    # Columns of integers may turn out to hold fractions further down.
    types = {field.name: _read_as(field.type) for field in table.schema}
    sizes = [len(line) + 1 for line in body.splitlines() if line]
    mean_bytes = sum(sizes) // max(1, len(sizes))
    min_bytes = min(sizes, default=1)
    present = _describe(table)
    return Layout(names, types, present, header_bytes, mean_bytes, min_bytes, dialect, judged.doubt)


def _split_fields(line: bytes, delimiter: str, where: str) -> list[str]:
    """The fields of the first line."""
    try:
        text = line.removeprefix(MARK).decode().rstrip("\r\n")
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])
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


def _read_as(kind: Any) -> Any:
    """The type that a column of this type in the first lines is read as."""
    is_kept = pa.types.is_boolean(kind) or isinstance(describe_type(kind), Dates)
    return kind if is_kept else pa.float64()


def _count_numeric(table: Any) -> int:
    return sum(holds is None for _, holds in describe_schema(table.schema))


def _describe(table: Any) -> list[tuple[str, str | None]]:
    """Describe what columns hold, with what a user may not expect: text among numbers, or several
    columns in one.
    """
    described = list[tuple[str, str | None]]()
    for (name, holds), column in zip(describe_schema(table.schema), table.columns, strict=True):
        if holds == "text":
            holds = _describe_text(column)
        if holds is not None and table.num_columns == 1 and " " in name:
            holds = str(holds) + ", without a comma, semicolon, tab or | between fields"
        described.append((name, holds))
    return described


def _describe_text(column: Any) -> str:
    """What a column of text holds: numbers but for a few values, or text, of which the first among
    what could be numbers is quoted, such as `1,000` or `-`.
    """
    values = column.to_pylist()
    given = sum(value is not None for value in values)
    texts = [
        (row, value)
        for row, value in enumerate(values)
        if value is not None and not is_number(value, ",")
    ]
    if not texts:
        return "text"
    row, text = texts[0]
    if len(texts) <= _MAX_TEXT_SHARE * given:
        return AlmostNumbers(row, text, len(texts))
    is_odd = row or any(map(str.isdigit, text))
    return f"text, such as {text[:_SHOWN_TEXT]!r}" if is_odd else "text"


def parse(block: bytes, layout: Layout, choice: ColumnChoice, where: str, row: int = 0) -> Batch:
    """Parse the chosen columns of a block of lines, of which the first is row number `row`."""
    as_text = [choice.user] if choice.has_named_users else []
    # Values of categories are read as they are written, but booleans are written in several ways.
    is_boolean = pa.types.is_boolean
    as_text += [name for name in choice.category_names if not is_boolean(layout.types[name])]
    table = parse_table(block, layout, choice.all, where, row, as_text)
    return to_batch(table, choice, where, row)


def parse_table(
    block: bytes,
    layout: Layout,
    columns: list[str],
    where: str,
    row: int = 0,
    as_text: Sequence[str] = (),
) -> Any:
    """Parse columns of a block of lines, of which the first is row number `row`, as an Arrow table
    of the types that the first lines have; columns that hold no numbers have their own, and some
    are read `as_text`.
    """
    holds = dict(layout.present)
    types = {name: layout.types[name] for name in columns if holds[name] is None}
    types |= dict.fromkeys(as_text, pa.string())
    convert = {"column_types": types, "include_columns": columns}
    try:
        if block.strip():
            return _read(block, layout.names, layout.dialect, convert)
        return pa.table({name: pa.array([], pa.float64()) for name in columns})
    except ERRORS:
        # Again in one thread and one piece, which knows the row, and can hold it however long.
        try:
            return _read(block, layout.names, layout.dialect, convert, is_serial=True)
        except ERRORS as error:
            located = _with_place(error, layout.names, row)
            uneven = _uneven(block, layout.dialect, where, row)
            raise uneven or unreadable(located, where) from error


def _read(
    block: bytes,
    names: list[str],
    dialect: Dialect,
    convert: dict[str, Any],
    is_serial: bool = False,
) -> Any:
    """Parse a block with Arrow, in several threads unless it `is_serial`."""
    block_size = len(block) if is_serial else max(_PARSED_BYTES, len(block) // 4)
    return pa_csv.read_csv(
        pa.BufferReader(_in_arrow_memory(block)),
        read_options=pa_csv.ReadOptions(
            column_names=names, use_threads=not is_serial, block_size=block_size
        ),
        # Arrow, too, cuts blocks into pieces at line breaks; the exact way is slower.
        parse_options=pa_csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=b'"' in block
        ),
        convert_options=pa_csv.ConvertOptions(decimal_point=dialect.decimal, **convert),
    )


def _in_arrow_memory(block: bytes) -> Any:
    """Copy bytes to a buffer that Arrow owns.

    A thread of Arrow may release its last reference to the buffer later, when the interpreter is
    ending already: if Python owned the bytes, it would wait for the interpreter's lock, and the
    process would abort.
    """
    stream = pa.BufferOutputStream()
    stream.write(block)
    return stream.getvalue()


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_LETTERS else f"{text[:_SHOWN_LETTERS]}..."


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


def _with_place(error: Exception, names: list[str], row: int) -> Exception:
    """Rewrite the place in an error of Arrow.

    Arrow counts rows from one in each block, and counts columns; we count rows from zero in the
    file, and name columns.
    """
    text = re.sub(r"Row #(\d+)", lambda found: f"row {row + int(found[1]) - 1}", str(error))
    return ValueError(
        re.sub(r"In CSV column #(\d+)", lambda found: f"in column {names[int(found[1])]!r}", text)
    )
