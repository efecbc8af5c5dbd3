"""Sources: arrays, data frames, files, queries and streams, all turned into chunks of rows.

To add a kind of data: a module in this folder with `open_data(data, request)`, and a line in
`opening` that recognises it. To add a kind of file: a module with `open_files(paths, request)`, and
a line in `paths.READERS`. Modules are imported when they are needed, and the libraries they read
with too.
"""

from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.columns import ColumnRequest
from ckm._sources.opening import ENGINES, IN_MEMORY, kind_of, open_rows, open_source

__all__ = [
    "BEGINNING",
    "ENGINES",
    "IN_MEMORY",
    "Chunk",
    "ColumnRequest",
    "Place",
    "Source",
    "kind_of",
    "open_rows",
    "open_source",
]
