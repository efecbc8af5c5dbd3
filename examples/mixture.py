"""A mixture of Gaussians from one pass: what is usual, which rows are not, and rows like them."""

import numpy as np

import ckm

rng = np.random.default_rng(0)
KINDS = 4
ROWS = 100_000

# Measurements of machines of four kinds: each has its own levels, spreads and correlations.
levels = rng.uniform(0, 40, (KINDS, 3))
roots = rng.normal(size=(KINDS, 3, 3))
kinds = rng.choice(KINDS, ROWS, p=[0.4, 0.3, 0.2, 0.1])
X = levels[kinds] + np.einsum("li,lid->ld", rng.normal(size=(ROWS, 3)), roots[kinds])

model = ckm.CompressiveGaussianMixture(
    n_components=KINDS, covariance_type="full", random_state=0
).fit(X)
print(model.solution_)

agreement = np.mean([np.bincount(model.predict(X[kinds == k])).max() for k in range(KINDS)])
print(f"\nRows whose kind is found: {agreement * KINDS / ROWS:.1%}")

# Rows in a place where no kind has any: their density is far below that of all others.
usual = model.score_samples(X)
strange = model.score_samples(X.mean(axis=0) + 30 * rng.normal(size=(5, 3)))
limit = np.quantile(usual, 0.001)
print(f"Strange rows below the lowest 0.1 % of the densities: {(strange < limit).sum()} of 5")

# The sketch is all that is needed: other numbers of components, weeks later, without the rows.
for K in (2, 4, 6):
    fitted = ckm.fit_mixture(model.sketch_, K, "full", random_state=0)
    print(f"K = {K}: status {fitted.status}, BIC {fitted.bic(X):.4g}")

made, _ = model.sample(1000)
print(
    "Mean of 1000 made rows:", made.mean(axis=0).round(1), "of the data:", X.mean(axis=0).round(1)
)
