"""How many clusters? Ask the sketch, after the rows are gone."""

import numpy as np

import ckm

rng = np.random.default_rng(0)
customers = ckm.datasets.gaussian_mixture(50_000, 6, 4, separation=12, random_state=4).rows
noise = rng.uniform(size=(50_000, 4))

sketch = ckm.sketch(customers, n_clusters=20, random_state=0)
curve = ckm.curve(sketch, max_clusters=20, random_state=0)
print(curve)

solution = curve.solutions[curve.suggestion or 1]
print(f"\n{len(solution.weights)} centroids, shares {np.round(solution.weights, 3)}")

# Rows without clusters: the answer is that there is no clear number.
print()
print(ckm.curve(ckm.sketch(noise, n_clusters=20, random_state=0), random_state=0).reason)

# The same inside the estimator.
model = ckm.CompressiveKMeans(n_clusters="auto", random_state=0).fit(customers)
print(f"\nCompressiveKMeans chose {len(model.cluster_centers_)}: {model.curve_.reason}")
