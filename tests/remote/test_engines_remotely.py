"""`ckm sketch --engine` takes addresses, which the workers read."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import run
from files_of_every_kind import rows, table

import ckm

pytest.importorskip("dask")
pytestmark = [pytest.mark.xdist_group("remote"), pytest.mark.slow]


def test_workers_read_objects(s3: Any, tmp_path: Path) -> None:
    X = rows()
    for i in range(3):
        path = tmp_path / f"part-{i}.parquet"
        pq.write_table(table(X[i * 1000 : i * 1000 + 1000]), path)
        s3.upload(path, f"data/{path.name}")
    like = ckm.sketch(str(tmp_path / "*.parquet"), n_clusters=3, random_state=0)
    like.save(f"{s3.url}/like.ckm")
    address = f"s3://AKIAOTHER:hunter2-PASSWORD@{s3.name}/data/*.parquet"
    checkpoint = tmp_path / "pass.part"
    options = ("--like", f"{s3.url}/like.ckm", "--engine", "dask", "--checkpoint", checkpoint)
    out, err = run("sketch", address, *options, "-o", f"{s3.url}/found.ckm")
    assert ckm.load(f"{s3.url}/found.ckm") == like
    assert "hunter2" not in out + err
