"""Two places that may not share rows agree on frequencies, sketch their own data, and merge the
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

# The first place decides the frequencies; its file holds sums, no rows.
ckm.sketch(here, n_clusters=4, random_state=0).save(folder / "here.ckm")

# The second uses the same ones.
ckm.sketch(there, like=folder / "here.ckm").save(folder / "there.ckm")

# Anyone can add the files up and decode the sum.
both = ckm.merge(map(ckm.load, sorted(folder.glob("*.ckm"))))
print(ckm.decode(both, n_clusters=4, random_state=0).centroids.round(2))

# The sum is the sketch of all rows, bit for bit.
assert both == ckm.sketch(X, like=both)

# And it forgets as it learned.
assert (both - ckm.load(folder / "there.ckm")).z.tobytes() == ckm.load(
    folder / "here.ckm"
).z.tobytes()
