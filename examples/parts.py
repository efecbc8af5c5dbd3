"""Two places that may not share rows use the same frequencies, sketch their own data, and merge the
sketches.
"""

import tempfile
from pathlib import Path

import ckm

X = ckm.datasets.gaussian_mixture(
    60_000, n_clusters=4, n_features=3, separation=12, random_state=1
).rows
here = X[:25_000]
there = X[25_000:]
folder = Path(tempfile.mkdtemp())

# The first place chooses the frequencies; its file contains sums, no rows.
ckm.sketch(here, n_clusters=4, random_state=0).save(folder / "here.ckm")

# The second place uses the same frequencies.
ckm.sketch(there, like=folder / "here.ckm").save(folder / "there.ckm")

# Anyone can add the files up and decode the sum.
both = ckm.merge(map(ckm.load, sorted(folder.glob("*.ckm"))))
print(ckm.decode(both, n_clusters=4, random_state=0).centroids.round(2))

# The sum is bit-identical to the sketch of all rows.
assert both == ckm.sketch(X, like=both)

# Subtraction removes rows exactly.
assert (both - ckm.load(folder / "there.ckm")).z.tobytes() == ckm.load(
    folder / "here.ckm"
).z.tobytes()
