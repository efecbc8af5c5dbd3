"""
Queries of polars and DuckDB
============================

Rows can come from a query that was not run yet. A lazy frame of polars, or a relation of DuckDB, is
given as it is; its rows are read in batches and never all in memory. Labels go back the same way.

Needs ``pip install polars duckdb``.
"""

import tempfile
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import ckm

ROWS = 200_000
CLUSTERS = 3
rng = np.random.default_rng(0)

# Rides of three kinds: in town, commuters, and to the airport.
kind = rng.choice(3, ROWS, p=[0.6, 0.3, 0.1])
km = np.abs(
    np.array([3.0, 14.0, 30.0])[kind] + np.array([1.0, 2.0, 2.5])[kind] * rng.normal(size=ROWS)
)
minutes = 4 + km * np.array([4.0, 2.4, 1.3])[kind] + 2 * rng.normal(size=ROWS)
minutes = minutes.clip(min=1)
rides = pl.DataFrame({"km": km, "minutes": minutes, "valid": rng.random(ROWS) < 0.95})

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rides.parquet"
rides.write_parquet(path)

# %%
# polars
# ------
# The filter is part of the query, and pushed down to the file.

query = pl.scan_parquet(path).filter(pl.col("valid")).select("km", "minutes")
sketch = ckm.sketch(query, n_clusters=CLUSTERS, standardize=True, random_state=0)
found = ckm.decode(sketch, CLUSTERS, random_state=0)
print(found.to_frame())

# %%
# DuckDB
# ------
# The same rows by SQL. For the same frequencies the sums are the same, to the last bit.

database = duckdb.connect()
relation = database.sql(f"select km, minutes from '{path}' where valid")
assert ckm.sketch(relation, like=sketch) == sketch
print("polars and DuckDB give the same sketch.")

# %%
# Labels where the rows are
# -------------------------
# ``map_batches`` labels rows inside a query of polars. The result of a group-by over labels is as
# small as the number of clusters.

labelled = query.map_batches(
    lambda batch: batch.with_columns(cluster=pl.Series(found.predict(batch), dtype=pl.Int32)),
    schema={"km": pl.Float64, "minutes": pl.Float64, "cluster": pl.Int32},
)
table = (
    labelled.group_by("cluster")
    .agg(pl.len().alias("rides"), pl.col("km").mean(), pl.col("minutes").mean())
    .sort("cluster")
    .collect()
)
print(table)

# %%
# In DuckDB a registered function does the same: it gets columns as Arrow arrays.


def nearest(km: object, minutes: object) -> object:
    """Return the cluster of each ride."""
    import pyarrow as pa

    return pa.array(found.predict(pa.table({"km": km, "minutes": minutes})))


database.create_function("nearest", nearest, ["DOUBLE", "DOUBLE"], "INTEGER", type="arrow")
by_sql = database.sql(
    f"select nearest(km, minutes) as cluster, count(*) as rides from '{path}' where valid "
    "group by cluster order by cluster"
).fetchall()
assert by_sql == table.select("cluster", "rides").rows()
print(by_sql)
database.remove_function("nearest")
database.close()
del relation, database

# %%
# A sample of the rides, coloured by their labels:

some = labelled.collect().sample(4000, seed=0)
folder.cleanup()
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
colours = np.array(["#2a6f97", "#d98032", "#3a7d44"])
axes.scatter(some["km"], some["minutes"], s=3, c=colours[some["cluster"].to_numpy()])
axes.scatter(*found.centroids.T, s=120, marker="X", color="black", edgecolor="white")
axes.set(title="Rides by cluster, and their centroids", xlabel="km", ylabel="minutes")
plt.show()
