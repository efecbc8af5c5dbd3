"""Examples in modules that need an optional package are tried where it is installed."""

from importlib.util import find_spec

_NEEDED_BY = {
    "dask": ["runners/dask.py"],
    "pyspark": ["runners/spark.py"],
    "ray": ["runners/ray.py"],
    "torch": [
        *(f"kernels/{name}.py" for name in ("torch", "plain", "card", "distances", "lanes", "triton")),
        "runners/card.py",
        "nearest_card.py",
        "atoms_card.py",
        "cloud_card.py",
    ],
}

collect_ignore = [f"src/ckm/{name}" for package, names in _NEEDED_BY.items() if find_spec(package) is None for name in names]
