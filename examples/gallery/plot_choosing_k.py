"""
How many clusters?
==================

One sketch answers for every number of clusters, after the rows are gone. :func:`ckm.curve` gives
the SSE of each number, the evidence for it, and a suggestion with its reason.
"""

import matplotlib.pyplot as plt
import numpy as np

import ckm

MOST = 15

clusters = ckm.datasets.gaussian_mixture(50_000, 6, 4, separation=12, random_state=4).rows
sketch = ckm.sketch(clusters, n_clusters=MOST, random_state=0)
curve = ckm.curve(sketch, max_clusters=MOST, random_state=0)
print(curve)

# %%
# Centroids for every number are ready. ``CompressiveKMeans(n_clusters="auto")`` does all of this
# inside the estimator.

solution = curve.solutions[curve.suggestion or 1]
print(f"{len(solution.weights)} centroids, shares {np.round(solution.weights, 3)}")

# %%
# Rows without clusters get no number: the answer is that there is no clear one.

uniform = np.random.default_rng(0).uniform(size=(50_000, 4))
none = ckm.curve(ckm.sketch(uniform, n_clusters=MOST, random_state=0), MOST, random_state=0)
print(none.reason)

# %%
# The SSE falls with every cluster that is added, with or without clusters in the data. What K
# Gaussians leave of the sketch, divided by what chance leaves, falls to about one where they
# explain it.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for found, name, colour in ((curve, "six clusters", "#2a6f97"), (none, "uniform rows", "#d98032")):
    left.plot(found.n_clusters, found.sse / found.sse[0], "o-", label=name, color=colour)
    right.plot(found.n_clusters, found.residual, "o-", label=name, color=colour)
left.set(title="SSE, relative to one cluster", xlabel="number of clusters", ylim=(0, None))
right.set(title="Residual, relative to chance", xlabel="number of clusters", yscale="log")
right.axhline(1, color="0.5", linestyle="--", linewidth=1)
for axis in (left, right):
    if curve.suggestion is not None:
        axis.axvline(curve.suggestion, color="#2a6f97", alpha=0.3, linewidth=6, zorder=0)
left.legend(frameon=False)
plt.show()
