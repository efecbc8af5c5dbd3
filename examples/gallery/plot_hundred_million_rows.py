"""
A hundred million rows
======================

No array holds these rows. Four generators make them, batch by batch, and each batch is forgotten
as soon as it was added to a sketch. As float32 numbers they would be 800 MB; what is kept is some
kilobytes.

The environment variable ``CKM_EXAMPLE_ROWS`` sets another number of rows.
"""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import ndtri

import ckm

ROWS = int(float(os.environ.get("CKM_EXAMPLE_ROWS", "1e8")))
BATCH = 2**18
PARTS = 4
CLUSTERS = 5
# Standard normal numbers are drawn from a table of quantiles, which is quicker than making each.
QUANTILES = ndtri((np.arange(2**16) + 0.5) / 2**16).astype(np.float32)
MEANS = np.random.default_rng(3).uniform(0, 40, (CLUSTERS, 2)).astype(np.float32)


def batches(seed: int, count: int) -> Iterator[np.ndarray]:
    """Make rows around five means, in batches."""
    rng = np.random.Generator(np.random.SFC64(seed))
    for start in range(0, count, BATCH):
        size = min(BATCH, count - start)
        rows = QUANTILES.take(rng.integers(2**16, size=(size, 2), dtype=np.uint16))
        rows += MEANS.take(rng.integers(CLUSTERS, size=size, dtype=np.uint8), axis=0)
        yield rows


# %%
# The first batch chooses the frequencies: twice as many as the centroids have numbers, which is
# enough for rows that are like those of the first batch. Each part then makes and sketches its own
# rows, in a thread of its own, and the four sketches are added.

first = next(batches(0, BATCH))
design = ckm.sketch(first, n_clusters=CLUSTERS, sketch_size=2 * CLUSTERS * 2, random_state=0)


def sketch_part(part: int) -> ckm.Sketch:
    """Sketch the rows of one part."""
    return ckm.sketch(batches(1 + part, ROWS // PARTS), like=design)


start = time.perf_counter()
with ThreadPoolExecutor() as threads:
    sketch = ckm.merge(threads.map(sketch_part, range(PARTS)))
seconds = time.perf_counter() - start
print(f"{sketch.count:,.0f} rows made and sketched in {seconds:.1f} s")
print(f"A sketch of {sketch.nbytes:,} bytes; the rows would take {8 * sketch.count:,.0f} bytes")

# %%
# Decoding takes as long for a hundred million rows as for a hundred thousand. The means are found
# to a few thousandths of the standard deviation of a cluster.

start = time.perf_counter()
found = ckm.decode(sketch, CLUSTERS, match=MEANS, random_state=0)
error = np.linalg.norm(found.centroids - MEANS, axis=1)
print(f"Decoded in {time.perf_counter() - start:.2f} s, status {found.status}")
print("Distances to the true means:", error.round(4))

# %%
# The picture is drawn from the sketch, too: the density that was recovered, without any row.

edges = np.linspace(-5, 45, 160)
grid = np.stack(np.meshgrid(edges, edges), axis=-1)
density = found.density(grid.reshape(-1, 2)).reshape(len(edges), -1)
figure, axes = plt.subplots(figsize=(6.4, 5), layout="constrained")
image = axes.pcolormesh(edges, edges, density * sketch.count, cmap="Blues")
axes.scatter(*found.centroids.T, marker="+", s=120, color="#d62728", label="centroids")
axes.set(title=f"{sketch.count:,.0f} rows, as their sketch sees them", xlabel="x", ylabel="y")
axes.set_aspect("equal")
axes.legend(loc="upper left")
figure.colorbar(image, label="rows per unit of area")
plt.show()
