"""Lines of CSV: blocks of whole ones from any stream of bytes, what their columns hold, and their numbers."""

import csv
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.csv as pa_csv

from ckm.errors import InputFileError
from ckm.sources.arrow import ERRORS, held, to_batch, unreadable
from ckm.sources.columns import Chosen
from ckm.sources.streaming import Batch

BLOCK = 4 * 2**20  # bytes
_FIRST = 2**20  # bytes that types are inferred from
_PARSED = 2**20  # bytes that a thread parses at a time
_PATIENCE = 8  # blocks after which a quote that is never closed is taken for a letter
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the beginning of some files


class Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes; none at the end."""


class Layout(NamedTuple):
    """What a CSV's first lines tell: names and types of columns, the bytes before the first row, and those of a row (mean and least)."""

    names: list[str]
    types: dict[str, Any]
    held: list[tuple[str, str | None]]
    header: int
    mean: int
    least: int


def layout_of(file: Readable, where: str) -> Layout:
    """Read the first block of a file, and see."""
    return read_layout(next(lines(file, _FIRST, where), b""), where)


def read_layout(block: bytes, where: str) -> Layout:
    """What the first lines tell. A first line of numbers is a row, not a header: columns are then called x0, x1, ..."""
    first = block[: after_line(block)] or block
    try:
        fields = next(csv.reader([first.removeprefix(_MARK).decode().rstrip("\r\n")]), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputFileError(
            f"Cannot read {where}: its first line is not CSV in utf-8 ({error}); check the file, or write it again."
        ) from error
    nameless = all(map(_is_number, fields))
    names = [f"x{i}" for i in range(len(fields))] if nameless else [name.strip() for name in fields]
    header = (len(_MARK) if block.startswith(_MARK) else 0) if nameless else len(first)
    body = block[header:]
    try:
        schema = _read(body, names, pa_csv.ConvertOptions()).schema if body.strip() else pa.schema([(name, pa.null()) for name in names])
    except ERRORS as error:
        raise unreadable(error, where) from error
    # Whole-number columns may turn out to hold fractions further down.
    types = {field.name: pa.bool_() if pa.types.is_boolean(field.type) else pa.float64() for field in schema}
    sizes = [len(line) + 1 for line in body.splitlines() if line] or [1]
    return Layout(names, types, held(schema), header, max(1, sum(sizes) // len(sizes)), min(sizes))


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


def parse(block: bytes, layout: Layout, chosen: Chosen, where: str, row: int = 0) -> Batch:
    """The chosen columns of a block of lines, of which the first is row number `row`."""
    convert = pa_csv.ConvertOptions(column_types={name: layout.types[name] for name in chosen.all}, include_columns=chosen.all)
    try:
        table = _read(block, layout.names, convert) if block.strip() else _nothing(chosen)
    except ERRORS:
        try:  # again in one thread, which knows the row
            table = _read(block, layout.names, convert, use_threads=False)
        except ERRORS as error:
            raise unreadable(_with_row(error, row), where) from error
    return to_batch(table, chosen, where, row)


def _read(block: bytes, names: list[str], convert: Any, use_threads: bool = True) -> Any:
    options = pa_csv.ReadOptions(column_names=names, use_threads=use_threads, block_size=max(_PARSED, len(block) // 4))
    return pa_csv.read_csv(pa.BufferReader(block), read_options=options, convert_options=convert)


def _nothing(chosen: Chosen) -> Any:
    return pa.table({name: pa.array([], pa.float64()) for name in chosen.all})


def _bytes_of(file: Readable, size: int, where: str) -> bytes:
    try:
        return file.read(size)
    except ERRORS as error:
        raise unreadable(error, where) from error


def _with_row(error: Exception, row: int) -> Exception:
    """Arrow counts rows from one in each block; we count from zero, in the file."""
    return ValueError(re.sub(r"Row #(\d+)", lambda found: f"row {row + int(found[1]) - 1}", str(error)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
