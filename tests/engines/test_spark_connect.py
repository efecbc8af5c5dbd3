"""Spark Connect, in a process of its own: one that has begun with a classic session cannot have
both.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

for package in ("pyspark", "grpc", "grpc_status", "zstandard"):
    if find_spec(package) is None:
        pytest.skip(f"Spark Connect needs {package}", allow_module_level=True)

SCRIPT = """
import numpy as np, pyarrow as pa
from partitions import NAMES, assert_same, local_sketch, values
from pyspark.sql import SparkSession
import ckm

X = values()
local = local_sketch(X)
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
table = pa.table({name: X[:, i] for i, name in enumerate(NAMES)})
frame = spark.createDataFrame(table).repartition(3)
assert not hasattr(frame, "_jdf")
assert_same(ckm.sketch(frame, like=local.frequencies), local)
model = ckm.CompressiveKMeans(3, random_state=0).fit(frame)
found = model.predict(frame).toArrow()
expected = model.predict(pa.table({name: found.column(name) for name in NAMES}))
assert sorted(found.column("cluster").to_pylist()) == sorted(expected)
print("the same")
"""


def test_the_sketch_is_the_local_one() -> None:
    paths = [str(Path(__file__).parent), *sys.path]
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert "the same" in done.stdout, done.stderr[-3000:]
