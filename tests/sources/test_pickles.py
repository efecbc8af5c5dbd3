"""No pickle is loaded from a Zarr store, which may ask for it in its metadata."""

import json
import os
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from zarr_stores import zarr

from ckm._sources import open_source
from ckm._sources.zarr import _part
from ckm.errors import CkmError, InputFileError

assert zarr, "its tests are left out where it is not installed"


class Planted:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


PICKLE = {"id": "pickle", "protocol": 5}
DELTA = {"id": "delta", "dtype": "<f8", "astype": "<f8"}


@pytest.mark.parametrize("dtype", ["<f8", "|O"])
@pytest.mark.parametrize(
    "codecs", [{"filters": [PICKLE]}, {"filters": [DELTA, PICKLE]}, {"compressor": PICKLE}], ids=str
)
def test_a_store_of_pickles_runs_nothing(
    tmp_path: Path, codecs: dict[str, Any], dtype: str
) -> None:
    store = tmp_path / "x.zarr"
    store.mkdir()
    described = {
        "zarr_format": 2,
        "shape": [5, 2],
        "chunks": [5, 2],
        "dtype": dtype,
        "compressor": None,
        "filters": None,
        "fill_value": 0,
        "order": "C",
    }
    (store / ".zarray").write_text(json.dumps(described | codecs))
    (store / "0.0").write_bytes(pickle.dumps(Planted(tmp_path / "ran")))
    with pytest.raises(CkmError):
        list(open_source(store).chunks())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("where", ["filters", "compressors", "compressor"])
def test_arrays_of_pickles_are_refused_whoever_opened_them(where: str) -> None:
    codec = SimpleNamespace(codec_id="pickle")
    fields = {"filters": None, where: codec if where == "compressor" else [codec]}
    if where == "filters":
        fields["compressor"] = None
    with pytest.raises(InputFileError, match="the array is stored as pickles"):
        _part(SimpleNamespace(**fields), "the array")
