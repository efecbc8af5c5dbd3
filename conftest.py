"""Examples in modules that need an optional package are tried where it is installed."""

from importlib.util import find_spec

_NEEDED_BY = {
    "dask": ["_sources/engines/dask.py"],
    "pyspark": ["_sources/engines/spark.py"],
    "ray": ["_sources/engines/ray.py"],
    "torch": [
        "_kernels/torch.py",
        "_kernels/gpu",
        "_kmeans/*_gpu.py",
        "_kmeans/nearest_short.py",
        "_decoding/*_gpu.py",
        "_sources/*_gpu.py",
    ],
    "triton": [
        f"_kernels/gpu/{name}.py"
        for name in (
            "cells",
            "keys",
            "launch",
            "nearest",
            "phases",
            "projecting",
            "tallying",
            "wide",
        )
    ],
}

collect_ignore_glob = [
    f"src/ckm/{name}"
    for package, names in _NEEDED_BY.items()
    if find_spec(package) is None
    for name in names
]
