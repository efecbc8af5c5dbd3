"""
A mixture of Gaussians
======================

k-means knows where clusters are. A mixture also says how wide they are, in which direction, and
how likely each row is. :class:`ckm.CompressiveGaussianMixture` fits it from the same sketch, in one
pass over the rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

import ckm

KINDS = 4
ROWS = 100_000
rng = np.random.default_rng(5)

# Measurements of machines of four kinds: each has its own levels, spreads and correlations.
levels = np.array([[0.0, 0.0], [9.0, 2.0], [3.0, 9.0], [12.0, 10.0]])
roots = rng.normal(size=(KINDS, 2, 2))
kinds = rng.choice(KINDS, ROWS, p=[0.4, 0.3, 0.2, 0.1])
rows = levels[kinds] + np.einsum("li,lid->ld", rng.normal(size=(ROWS, 2)), roots[kinds])

model = ckm.CompressiveGaussianMixture(KINDS, covariance_type="full", random_state=0).fit(rows)
print(model.solution_)

# %%
# The sketch is all that is needed. Other numbers of components can be tried weeks later, without
# the rows; those that are kept here only compute the criterion.

for K in (2, 4, 6):
    fitted = ckm.fit_mixture(model.sketch_, K, "full", random_state=0)
    print(f"K = {K}: status {fitted.status}, BIC {fitted.bic(rows):.5g}")

# %%
# Rows in places where no kind has any are found by their density: below the lowest thousandth of
# the densities of usual rows. The ellipses are drawn at two standard deviations.

limit = np.quantile(model.score_samples(rows), 0.001)
strange = np.vstack([rows[:2000], rng.uniform(-6, 18, (60, 2))])
is_strange = model.score_samples(strange) < limit

figure, axes = plt.subplots(figsize=(7.5, 5), layout="constrained")
axes.scatter(*strange[~is_strange].T, s=3, color="0.6", label="usual rows")
axes.scatter(*strange[is_strange].T, s=18, color="#d62728", marker="x", label="unlikely rows")
for mean, covariance, weight in zip(model.means_, model.covariances_, model.weights_, strict=True):
    variances, directions = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(directions[1, 1], directions[0, 1]))
    width, height = 4 * np.sqrt(variances[::-1])
    axes.add_patch(
        Ellipse(mean, width, height, angle=angle, fill=False, edgecolor="#2a6f97", linewidth=2)
    )
    axes.annotate(
        f"{weight:.0%}",
        mean,
        ha="center",
        va="center",
        bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
    )
axes.set(title="Four Gaussians from a sketch, and rows that they find unlikely")
axes.set(xlabel="first measurement", ylabel="second measurement", aspect="equal")
axes.legend(loc="lower right")
plt.show()
