"""Centroids of an earlier run, in files: where searches start (--init), and how clusters are
numbered (--match).
"""

from pathlib import Path
from typing import Any, NamedTuple

from ckm._cli.centroids import read_centroids
from ckm._cli.files import CENTROIDS, Input
from ckm._cli.options import DecodingOptions
from ckm._decoding.numbering import given_centroids, in_columns, require_number
from ckm._util.address import Address, as_path
from ckm._util.arrays import FloatArray


class EarlierCentroids(NamedTuple):
    """What `ckm.decode` takes as `init` and `match`."""

    init: Any
    match: FloatArray | None


def init_file(decoding: DecodingOptions) -> Path | Address | None:
    """The file that --init names, unless it names a strategy."""
    path = as_path(decoding.init)
    return path if path.suffix.lower() in CENTROIDS else None


def earlier_inputs(decoding: DecodingOptions) -> list[Input]:
    """The files that are read, for the checks of all files of a command."""
    return [
        Input(init_file(decoding), "the file of --init"),
        Input(decoding.match, "the file of --match"),
    ]


def read_earlier(
    decoding: DecodingOptions, columns: tuple[str, ...] | None, n: int, K: int | None
) -> EarlierCentroids:
    """Read both; columns are found by name. K is the number of clusters, if it is known."""
    path = init_file(decoding)
    init: Any = decoding.init
    if path is not None:
        init = _read(path, columns, n, "init")
        if K is not None:
            require_number(init, K, "init")
    match = None if decoding.match is None else _read(decoding.match, columns, n, "match")
    return EarlierCentroids(init, match)


def _read(
    path: Path | Address, columns: tuple[str, ...] | None, n: int, argument: str
) -> FloatArray:
    found = read_centroids(path)
    values = in_columns(found.values, found.columns, columns, argument)
    return given_centroids(values, n, columns, argument)
