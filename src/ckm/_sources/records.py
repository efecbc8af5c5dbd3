"""Records of CSV: blocks of whole records from any stream of bytes.

A record ends with a line, unless the line break is within quotes.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from ckm._sources.arrow import ERRORS
from ckm._sources.dialect import MARK, delimiter_of
from ckm._sources.failures import unreadable
from ckm._util.arrays import IntArray
from ckm.errors import InputFileError

_QUOTE = ord('"')
# Bytes, at least, that the delimiter of a stream is inferred from.
_INFERRED_BYTES = 2**16
# Bytes of a record that an error shows.
_SHOWN_BYTES = 40


class Readable(Protocol):
    """Something that bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end."""


class QuoteTracker:
    """Follows which bytes of a stream are within quotes, as Arrow's parser does.

    A quote at the start of a field opens it, and the next quote closes it. A quote that directly
    follows the closing one opens the field again: `""` stands for a quote. All other quotes are
    letters, as in `5" wide`.

    Parameters
    ----------
    delimiter : str
        The delimiter between fields. The stream begins with a record.
    """

    def __init__(self, delimiter: str) -> None:
        self._openers = np.frombuffer(f'{delimiter}\n\r"'.encode(), np.uint8)
        self._delimiter = delimiter.encode()
        # The byte before the next piece; a letter in place of a quote that is one.
        self._before = b"\n"
        self._is_start = True
        self.is_open = False

    def last_record_end(self, piece: bytes) -> int:
        """Where the last record that ends in the next piece ends; 0 if none does."""
        was_open = self.is_open
        toggles = self.toggles(piece)
        # Very old files end lines with a carriage return.
        return _last_end(piece, b"\n", toggles, was_open) or _last_end(
            piece, b"\r", toggles, was_open
        )

    def toggles(self, piece: bytes) -> IntArray:
        """The positions in the next piece of quotes that open or close a field."""
        if self._is_start and piece.startswith(MARK):
            piece = self._delimiter * len(MARK) + piece[len(MARK) :]
        self._is_start = False
        if b'"' not in piece:
            self._before = piece[-1:] or self._before
            return np.zeros(0, np.int64)
        text = self._before + piece
        codes = np.frombuffer(text, np.uint8)
        quotes = 1 + np.flatnonzero(codes[1:] == _QUOTE)
        opening = quotes[int(self.is_open) :: 2]
        # Quotes open and close in turn, unless one that should open is a letter.
        if not np.isin(codes[opening - 1], self._openers).all():
            quotes = self._without_letters(text, quotes)
        self.is_open ^= bool(len(quotes) % 2)
        ends_with_letter = text.endswith(b'"') and text.rfind(b'"') not in quotes[-1:]
        self._before = b"x" if ends_with_letter else text[-1:]
        return quotes - 1

    def _without_letters(self, text: bytes, quotes: IntArray) -> IntArray:
        """Leave out quotes that are letters."""
        openers = set(self._openers.tolist()) - {_QUOTE}
        is_open = self.is_open
        last_closing = 0 if self._before == b'"' and not is_open else -1
        kept = list[int]()
        for i in quotes.tolist():
            if is_open:
                last_closing = i
            elif text[i - 1] not in openers and last_closing != i - 1:
                continue
            is_open = not is_open
            kept.append(i)
        return np.array(kept, np.int64)


def _last_end(piece: bytes, line_break: bytes, toggles: IntArray, was_open: bool) -> int:
    """Where the last line that ends outside quotes ends; 0 if none does.

    `toggles` are the quotes that open or close, and `was_open` whether the piece begins in quotes.
    """
    i = piece.rfind(line_break)
    while i >= 0:
        number = int(np.searchsorted(toggles, i))
        if was_open == bool(number % 2):
            return i + 1
        # Within quotes: go on before the opening one.
        i = piece.rfind(line_break, 0, int(toggles[number - 1])) if number else -1
    return 0


def _next_end(block: bytes, line_break: bytes, toggles: IntArray, low: int) -> int:
    """Where the first line that ends at or after `low`, outside quotes, ends; 0 if none does.

    The block begins with a record.
    """
    i = block.find(line_break, low)
    while i >= 0:
        number = int(np.searchsorted(toggles, i))
        if number % 2 == 0:
            return i + 1
        # Within quotes: go on after the closing one.
        i = block.find(line_break, int(toggles[number])) if number < len(toggles) else -1
    return 0


def split_records(
    file: Readable,
    size: int,
    where: str,
    max_bytes: int,
    delimiter: str | None = None,
    n_before: int = 0,
) -> Iterator[bytes]:
    """Yield blocks of about `size` bytes that end with a record.

    Parameters
    ----------
    file : Readable
        The stream, which begins with a record.
    size : int
        Bytes that are read at a time.
    where : str
        The name of the stream in errors.
    max_bytes : int
        Bytes of the longest record that is read to its end.
    delimiter : str, optional
        The delimiter between fields. By default it is inferred from the first bytes.
    n_before : int
        The number of bytes in earlier blocks: the blocks that follow are those that reading from
        the beginning would give.

    Raises
    ------
    InputFileError
        If a record is longer than `max_bytes`.
    """
    pieces = list[bytes]()
    tracker = None if delimiter is None else QuoteTracker(delimiter)
    if n_before and tracker is not None:
        # Reading from the beginning has read up to the next multiple of `size` already, and kept
        # what came after the last record.
        pieces.append(_read_bytes(file, -n_before % size, where))
        tracker.toggles(pieces[0])
    # The delimiter tells which quotes count, and needs the first lines as a whole.
    wanted = max(size, _INFERRED_BYTES) if tracker is None else size
    while piece := _read_bytes(file, wanted, where):
        wanted = size
        if tracker is None:
            tracker = QuoteTracker(delimiter_of(piece))
        end = tracker.last_record_end(piece)
        if end:
            yield b"".join([*pieces, piece[:end]])
            pieces = []
        pieces.append(piece[end:])
        if sum(map(len, pieces)) > max_bytes:
            raise _too_long(b"".join(pieces)[:_SHOWN_BYTES], where, max_bytes, tracker.is_open)
    if any(pieces):
        yield b"".join(pieces)


def first_record_end(block: bytes, delimiter: str) -> int:
    """Where the second record begins; zero if there is none."""
    toggles = QuoteTracker(delimiter).toggles(block)
    return _next_end(block, b"\n", toggles, 0) or _next_end(block, b"\r", toggles, 0)


def after_line(block: bytes) -> int:
    """Where the second line begins; zero if there is none."""
    return block.find(b"\n") + 1 or block.find(b"\r") + 1


def split_runs(block: bytes, size: int, delimiter: str) -> Iterator[bytes]:
    """Cut a block of records into runs of whole records of about `size` bytes."""
    toggles = QuoteTracker(delimiter).toggles(block)
    low = 0
    while low < len(block):
        enough = min(low + size, len(block)) - 1
        high = _next_end(block, b"\n", toggles, enough) or len(block)
        yield block[low:high]
        low = high


def _read_bytes(file: Readable, size: int, where: str) -> bytes:
    try:
        return file.read(size)
    except ERRORS as error:
        raise unreadable(error, where) from error


def _too_long(start: bytes, where: str, max_bytes: int, is_open: bool) -> InputFileError:
    """An error for a record that is not read further."""
    shown = start.decode(errors="replace")
    if is_open:
        return InputFileError(
            f"Cannot read {where}: the row that begins with {shown!r} has a quote that is not "
            f"closed within {max_bytes:,} bytes; close it, or double quotes that are letters."
        )
    return InputFileError(
        f"Cannot read {where}: the line that begins with {shown!r} is longer than {max_bytes:,} "
        f"bytes; write each row on a line of its own, or very wide rows as Parquet or .npy."
    )
