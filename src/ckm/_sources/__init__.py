"""Sources: arrays, data frames, files, queries and streams, all turned into chunks of rows.

To add a kind of data: a module in this folder with `open_data(data, request, settings)`, and a line
in `opening` that recognises it. To add a kind of file: a module with `open_files(paths, request,
settings)`, and a line in `paths.READERS`. Modules are imported when they are needed, and the
libraries they read with too.
"""

from ckm._sources.base import BEGINNING, Chunk, Place, Source
from ckm._sources.column_request import ColumnRequest
from ckm._sources.opening import IN_MEMORY, kind_of, open_rows, open_source
from ckm._sources.settings import ReadSettings

__all__ = [
    "BEGINNING",
    "IN_MEMORY",
    "Chunk",
    "ColumnRequest",
    "Place",
    "ReadSettings",
    "Source",
    "kind_of",
    "open_rows",
    "open_source",
]
