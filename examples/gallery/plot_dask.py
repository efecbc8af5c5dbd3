"""
Rows in Dask
============

A Dask array is a plan for rows in pieces, which may be on other machines. ``fit`` sends the work to
where the pieces are, and the workers send back sums. The sketch has the same bits as one made on
one machine.

Without ``pip install 'compressive-kmeans[dask]'`` the same pieces are sketched in turn.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckm

try:
    import dask.array as da
except ImportError:
    da = None

PIECES = 8
CLUSTERS = 6

rows = ckm.datasets.gaussian_mixture(400_000, CLUSTERS, 3, separation=14, random_state=2).rows
pieces = np.array_split(rows, PIECES)

# %%
# Without a ``distributed.Client`` Dask computes in threads of this process; with one, on its
# cluster. Nothing else changes.

if da is None:
    print("Dask is not installed: the pieces are sketched one after the other.")
    data = pieces
else:
    data = da.from_array(rows, chunks=(len(rows) // PIECES, 3))
    print(data)
sketch = ckm.sketch(data, n_clusters=CLUSTERS, random_state=0)
found = ckm.decode(sketch, CLUSTERS, random_state=0)

# %%
# The same from NumPy, with the same frequencies: identical, to the last bit.

assert ckm.sketch(rows, like=sketch) == sketch
print("The sketch of the pieces is that of all rows.")

# %%
# What travels is a sketch per piece, whatever the number of its rows. Labels are computed where the
# rows are: of a Dask array, ``predict`` is a Dask array.

labels = np.asarray(found.predict(data))
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
sizes = [rows.nbytes / 1e6, PIECES * sketch.nbytes / 1e6]
bars = left.bar(["rows, which stay", "sketches, which are sent"], sizes, color="#2a6f97", width=0.6)
left.bar_label(bars, [f"{size:.2f} MB" for size in sizes])
left.set(title="What is computed on, and what is sent", ylabel="megabytes")
some = np.random.default_rng(0).choice(len(rows), 4000, replace=False)
right.scatter(*rows[some, :2].T, c=labels[some], s=3, cmap="tab10")
right.scatter(*found.centroids[:, :2].T, marker="X", s=90, color="black", edgecolor="white")
right.set(title="Rows by label, and centroids", xlabel="column 0", ylabel="column 1")
plt.show()
