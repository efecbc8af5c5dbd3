"""
Customers in segments
=====================

A table as companies have it: a number for each customer, ages that are missing, amounts with a
heavy tail, columns in different units. :func:`ckm.describe` looks at it before anything is
clustered, and its advice goes straight into the estimator.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import ckm

ROWS = 60_000
rng = np.random.default_rng(0)

# Made customers of four kinds: shares, and typical amounts, visits, ages and discounts.
kind = rng.choice(4, ROWS, p=[0.4, 0.3, 0.2, 0.1])
amount = np.array([60.0, 250.0, 900.0, 7000.0])[kind] * np.exp(0.5 * rng.normal(size=ROWS))
visits = np.array([3.0, 14.0, 40.0, 60.0])[kind] * np.exp(0.4 * rng.normal(size=ROWS))
age = np.array([26.0, 38.0, 55.0, 46.0])[kind] + 5 * rng.normal(size=ROWS)
share = np.array([0.15, 0.5, 0.1, 0.2])[kind]
customers = pd.DataFrame(
    {
        "customer_id": 1_000_001 + np.arange(ROWS),
        "amount": amount.round(2),
        "visits": 1 + visits.astype(int),
        "age": np.where(rng.random(ROWS) < 0.02, np.nan, age.round(1)),
        "discount": rng.beta(30 * share, 30 * (1 - share)).round(3),
    }
)

# %%
# What is in the table
# --------------------
# One pass over the table says which columns would mislead k-means, and what to do.

found = ckm.describe(customers)
print(*found.advice, sep="\n")
print(found.arguments)

# %%
# The clusters
# ------------
# The advice is written as arguments, which go into the estimator as they are. One in fifty ages is
# missing; ``nan="impute"`` fills them in, so that every customer has a label, and warns of it.

warnings.simplefilter("ignore", ckm.errors.MissingRowsWarning)
model = ckm.CompressiveKMeans(4, nan="impute", random_state=0, **found.arguments).fit(customers)
columns = list(model.solution_.columns)
segments = pd.DataFrame(model.cluster_centers_, columns=columns).round(2)
print(segments.assign(share=model.weights_.round(3)))
print(f"adjusted Rand index to the true kinds: {adjusted_rand_score(kind, model.labels_):.3f}")

# %%
# Without the advice the number of the customer, which says nothing, decides everything:

naive = ckm.CompressiveKMeans(4, nan="impute", random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    naive.fit(customers)
print(f"without the advice: {adjusted_rand_score(kind, naive.labels_):.3f}")

# %%
# The picture shows the medians of the segments, coloured by how far they are from those of all
# customers, in interquartile ranges.

table = customers[columns].groupby(model.labels_).median()
quartiles = customers[columns].quantile([0.25, 0.5, 0.75])
contrasts = (table - quartiles.loc[0.5]) / (quartiles.loc[0.75] - quartiles.loc[0.25])
figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
image = axes.imshow(contrasts, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
axes.set_xticks(range(len(columns)), columns)
axes.set_yticks(range(4), [f"segment {k}, {share:.0%}" for k, share in enumerate(model.weights_)])
for (k, j), contrast in np.ndenumerate(contrasts.to_numpy()):
    colour = "white" if abs(contrast) > 1.2 else "black"
    axes.text(j, k, f"{table.iloc[k, j]:.4g}", ha="center", va="center", color=colour)
axes.set_title("Medians of four segments of customers")
figure.colorbar(image, label="interquartile ranges from the median of all")
plt.show()
