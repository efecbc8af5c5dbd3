"""Tables as people have them.

"coordinates": `ckm fit customers.parquet -k 6` without any further option, and with `--cells 0`: is
the id left out, and how far are the coordinates of centroids from the means of their rows?
"sources": the same table with the options that are recommended, from Parquet, CSV, DuckDB and
polars, against StandardScaler and KMeans on the same columns: SSE, and adjusted Rand index to the
true segments. "decode": sketched first and decoded for several numbers of clusters. "advice":
whether the advice on the columns of thirty labelled tables is right.
"""

import argparse
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

import ckm
from benchmarks import customer_table, harness, labelled_tables
from benchmarks.harness import Target, show

SECTIONS = ("coordinates", "sources", "decode", "advice")
K = 6
NUMBERS = (4, 5, 6)
# Rows of a cluster below which one row at its boundary moves its mean by more than is measured.
MIN_CLUSTER = 1000


def main() -> None:
    parser = harness.options(__doc__ or "", first_seed=400)
    harness.sections_option(parser, SECTIONS)
    parser.add_argument("--rows", type=float, help="rows of the table of customers")
    parser.add_argument("--count", type=int, help="number of seeds (default: 5, quick: 1)")
    parser.set_defaults(counts=(5, 1))
    arguments = parser.parse_args()
    n_rows = int(arguments.rows or (100_000 if arguments.quick else 2_000_000))
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {}
    targets: list[Target] = []
    for name in arguments.sections:
        measure = globals()[f"measure_{name}"]
        results[name], own = measure(n_rows, arguments)
        targets += own
    settings = {"rows": n_rows, "clusters": K, "first seed": arguments.seeds}
    harness.report("tables", arguments.quick, settings, results, targets)


def measure_coordinates(n_rows: int, arguments: argparse.Namespace) -> tuple[Any, list[Target]]:
    """Distances of coordinates from the means of their rows, in standard deviations."""
    found = []
    for seed in harness.seeds_of(arguments):
        table, _ = customer_table.whole_table(n_rows, seed)
        rows = table.select(customer_table.USEFUL).to_pandas().to_numpy(np.float64)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "customers.parquet"
            customer_table.write(file, n_rows, seed)
            for cells in ("auto", "0"):
                centroids, left_out = _fit_on_command_line(file, cells)
                own = _distances(centroids, rows)
                found.append({"seed": seed, "cells": cells, "id left out": left_out, **own})
    columns = list(found[0])
    show("Coordinates against the means of rows, in standard deviations", columns, _cells(found))
    with_cells = [one for one in found if one["cells"] == "auto"]
    frequencies = [one for one in found if one["cells"] == "0"]
    return found, [
        Target("id left out, share of runs", 1, float(np.mean([x["id left out"] for x in found]))),
        Target(
            "coordinates with cells, clusters of 1000 rows and more, largest (std)",
            0.005,
            max(x["largest"] for x in with_cells),
            at_most=True,
        ),
        Target(
            "coordinates from frequencies alone, the same (std)",
            0.02,
            max(x["largest"] for x in frequencies),
            at_most=True,
        ),
    ]


def _fit_on_command_line(file: Path, cells: str) -> tuple[np.ndarray, bool]:
    """The centroids of `ckm fit FILE -k 6`, and whether it left the id out."""
    output = file.with_name("centroids.csv")
    command = [sys.executable, "-m", "ckm", "fit", str(file), "-k", str(K), "--cells", cells]
    subprocess.run([*command, "-o", str(output)], check=True, capture_output=True)
    names = output.read_text().splitlines()[0].split(",")
    centroids = np.loadtxt(output, delimiter=",", skiprows=1, ndmin=2)
    which = [names.index(name) for name in customer_table.USEFUL]
    return centroids[:, which], "customer_id" not in names


def _distances(centroids: np.ndarray, rows: np.ndarray) -> dict[str, float]:
    labels = pairwise_distances_argmin(rows, centroids)
    counts = np.bincount(labels, minlength=K)
    sums = np.stack([np.bincount(labels, column, minlength=K) for column in rows.T], axis=1)
    means = sums / np.maximum(counts, 1)[:, None]
    apart = np.abs(centroids - means) / rows.std(axis=0)
    is_large = counts >= MIN_CLUSTER
    k, d = np.unravel_index(np.argmax(np.where(is_large[:, None], apart, 0.0)), apart.shape)
    farthest = np.abs(rows[labels == k, d] - means[k, d]).max() / rows[:, d].std()
    return {
        "largest": float(apart[k, d]),
        "rows in it": int(counts[k]),
        # So many of the farthest rows of this cluster move its mean by as much.
        "farthest rows": float(apart[k, d] * counts[k] / farthest),
        "root mean square over rows": float(
            np.sqrt((counts[:, None] * apart**2).sum() / counts.sum() / rows.shape[1])
        ),
        "largest of small clusters": float(apart[~is_large & (counts > 0)].max(initial=0.0)),
        "smallest cluster": float(counts.min()),
    }


def measure_sources(n_rows: int, arguments: argparse.Namespace) -> tuple[Any, list[Target]]:
    """SSE and adjusted Rand index with the recommended options, from four kinds of sources."""
    found = []
    for seed in harness.seeds_of(arguments):
        with tempfile.TemporaryDirectory() as folder:
            found += _from_sources(n_rows, seed, Path(folder))
    show("Recommended options against StandardScaler and KMeans", list(found[0]), _cells(found))
    ratios = [one["SSE / KMeans"] for one in found]
    spreads = [max(own) / min(own) - 1 for own in _by_seed(found, "SSE / KMeans")]
    alike = [max(own) / min(own) - 1 for own in _by_seed(found, "SSE with one design")]
    gains = [one["ARI"] - one["ARI of KMeans"] for one in found]
    return found, [
        Target("SSE / KMeans, largest", 1.005, max(ratios), at_most=True),
        Target("SSE over sources, largest difference", 0.003, max(spreads), at_most=True),
        Target("the same with one design", 1e-6, max(alike), at_most=True),
        Target("ARI minus that of KMeans, least", -0.001, min(gains)),
    ]


def _by_seed(found: list[dict[str, Any]], name: str) -> list[list[float]]:
    seeds = {one["seed"] for one in found}
    return [[one[name] for one in found if one["seed"] == seed] for seed in seeds]


def _from_sources(n_rows: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score
    from sklearn.preprocessing import StandardScaler

    for ending in ("parquet", "csv"):
        customer_table.write(folder / f"customers.{ending}", n_rows, seed)
    table, segments = customer_table.whole_table(n_rows, seed)
    options = ckm.describe(table, random_state=seed).arguments
    used = [name for name in customer_table.USEFUL if name not in options["exclude"]]
    frame = table.select(used).to_pandas().astype(float)
    frame[options["log"]] = np.log1p(frame[options["log"]])
    Z = StandardScaler().fit_transform(frame.to_numpy())
    reference = KMeans(K, n_init=5, random_state=seed).fit(Z)
    ari = adjusted_rand_score(segments, reference.labels_)
    sources = _open_sources(folder)
    design = ckm.sketch(table, n_clusters=K, random_state=seed, **options)
    found = []
    for name, open_source in sources.items():
        sketch = ckm.sketch(open_source(), n_clusters=K, random_state=seed, **options)
        solution = ckm.decode(sketch, K, random_state=seed)
        same = ckm.decode(ckm.sketch(open_source(), like=design), K, random_state=seed)
        labels = solution.predict(open_source())
        found.append(
            {
                "seed": seed,
                "source": name,
                "options": str(options),
                "SSE / KMeans": -solution.score(open_source()) / reference.inertia_,
                "SSE with one design": -same.score(open_source()),
                "ARI": adjusted_rand_score(segments, labels),
                "ARI of KMeans": ari,
            }
        )
    return found


def _open_sources(folder: Path) -> dict[str, Any]:
    import duckdb
    import polars

    parquet = str(folder / "customers.parquet")
    duckdb.execute("set enable_progress_bar = false")
    return {
        "Parquet": lambda: parquet,
        "CSV": lambda: str(folder / "customers.csv"),
        "DuckDB": lambda: duckdb.sql(f"select * from '{parquet}'"),
        "polars": lambda: polars.read_parquet(parquet),
    }


def measure_decode(n_rows: int, arguments: argparse.Namespace) -> tuple[Any, list[Target]]:
    """One sketch of the recommended options, decoded for several numbers of clusters."""
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import StandardScaler

    found = []
    for seed in harness.seeds_of(arguments):
        table, _ = customer_table.whole_table(n_rows, seed)
        options = ckm.describe(table, random_state=seed).arguments
        frame = table.select(customer_table.USEFUL).to_pandas().astype(float)
        rows = frame.copy()
        rows[options["log"]] = np.log1p(rows[options["log"]])
        Z = StandardScaler().fit_transform(rows.to_numpy())
        sketch = ckm.sketch(table, n_clusters=K, random_state=seed, **options)
        for number in NUMBERS:
            solution = ckm.decode(sketch, number, random_state=seed)
            reference = KMeans(number, n_init=5, random_state=seed).fit(Z)
            counts = np.bincount(solution.predict(frame), minlength=number)
            found.append(
                {
                    "seed": seed,
                    "K": number,
                    "SSE / KMeans": -solution.score(frame) / reference.inertia_,
                    "smallest cluster": int(counts.min()),
                }
            )
    show("Sketched first, decoded later", list(found[0]), _cells(found))
    least = min(one["smallest cluster"] for one in found)
    ratios = [one["SSE / KMeans"] for one in found]
    return found, [
        Target("decoded for 4, 5 and 6: SSE / KMeans, largest", 1.01, max(ratios), at_most=True),
        Target("rows of the smallest cluster", 4, float(least)),
    ]


def measure_advice(n_rows: int, arguments: argparse.Namespace) -> tuple[Any, list[Target]]:
    """What is said of thirty labelled tables."""
    found = [_judge(table) for table in labelled_tables.TABLES]
    show("Advice on labelled tables", list(found[0]), _cells(found))
    right = sum(not one["wrong"] for one in found)
    wrongly_left_out = sum(bool(one["wrongly left out"]) for one in found)
    return found, [
        Target("tables on which the advice is right", 28, float(right)),
        Target("tables with a column wrongly left out", 0, float(wrongly_left_out), at_most=True),
    ]


def _judge(table: labelled_tables.LabelledTable) -> dict[str, Any]:
    data = table.load()
    described = ckm.describe(data)
    wrong = []
    for column in described.columns:
        if column.kind in ("text", "empty"):
            continue
        kind = {"heavy-tailed": "ordinary", "dates": "timestamp"}.get(column.kind, column.kind)
        if kind not in table.labels.get(column.name, {"ordinary"}):
            wrong.append(f"{column.name}: {kind}")
    advised = bool(described.arguments.get("standardize"))
    if table.standardize is not None and advised != table.standardize:
        wrong.append(f"standardize: {advised}")
    sketch = ckm.sketch(data, sketch_size=50, cells=0, nan="drop", projection=None, random_state=0)
    numeric = [c.name for c in described.columns if c.mean is not None]
    left_out = set(numeric) - set(sketch.columns or numeric)
    wrongly = sorted(left_out - table.may_leave_out)
    return {
        "table": table.name,
        "left out": ", ".join(sorted(left_out)),
        "wrong": "; ".join(wrong + [f"left out: {name}" for name in wrongly]),
        "wrongly left out": ", ".join(wrongly),
    }


def _cells(found: list[dict[str, Any]]) -> list[list[Any]]:
    return [list(one.values()) for one in found]


if __name__ == "__main__":
    main()
