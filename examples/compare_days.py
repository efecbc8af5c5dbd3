"""Is today like yesterday? Two days of orders: what moved, and a rule for a pipeline."""

import numpy as np
import pandas as pd

import ckm

CLUSTERS = 4
ROWS = 5000
COLUMNS = ["basket", "price", "minutes"]
MEANS = np.array([[2.0, 30.0, 4.0], [8.0, 15.0, 9.0], [3.0, 90.0, 12.0], [12.0, 55.0, 25.0]])
DEVIATIONS = np.array([0.6, 6.0, 1.5])
# Effects up to this are of no interest here.
TOLERANCE = 0.03
rng = np.random.default_rng(0)


def orders(shares: list[float], slower: float = 0.0) -> pd.DataFrame:
    """Return a day's orders, of four kinds."""
    kinds = rng.choice(CLUSTERS, p=shares, size=ROWS)
    rows = MEANS[kinds] + DEVIATIONS * rng.normal(size=(ROWS, 3))
    rows[:, 2] += slower
    return pd.DataFrame(rows, columns=COLUMNS)


usual = [0.4, 0.3, 0.2, 0.1]
monday = ckm.sketch(orders(usual), n_clusters=CLUSTERS, standardize=True, random_state=0)
days = {
    "tuesday": orders(usual),
    "wednesday": orders(usual, slower=0.4),
    "thursday": orders([0.3, 0.3, 0.2, 0.2]),
}

for day, rows in days.items():
    # Only the sketch of a day has to be kept: some kilobytes.
    found = ckm.compare(monday, ckm.sketch(rows, like=monday), n_clusters=CLUSTERS)
    verdict = "look at it" if found.effect > TOLERANCE else "fine"
    print(f"--- monday and {day}: {verdict}\n{found}\n")
