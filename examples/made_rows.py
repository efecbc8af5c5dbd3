"""Look at columns, and draw rows, from a sketch alone: the data is gone."""

import sys

import numpy as np

import ckm


def daily_trips(rng: np.random.Generator, count: int) -> np.ndarray:
    """Distance in km and minutes of trips: short ones in town, and commuters."""
    in_town = rng.random(count) < 0.7
    distance = np.where(in_town, rng.gamma(4, 0.6, count), rng.normal(22, 4, count))
    minutes = 4 + distance * np.where(in_town, 4.0, 1.6) + rng.normal(0, 2, count)
    return np.column_stack([distance, minutes])


def main() -> None:
    trips = daily_trips(np.random.default_rng(0), 50_000)
    sketch = ckm.sketch(trips, n_clusters=5, random_state=0)
    exact = np.quantile(trips, [0.05, 0.5, 0.95], axis=0).T
    del trips

    found = ckm.marginals(sketch, random_state=0)
    print(found)
    print("the rows' own 5, 50 and 95 %:", np.round(exact, 1).tolist())

    made = ckm.decode(sketch, 5, random_state=0).sample(10_000, random_state=0)
    print(f"made rows: correlation {np.corrcoef(made.T)[0, 1]:.2f}")
    if len(sys.argv) > 1:
        found.plot(made, sys.argv[1])


if __name__ == "__main__":
    main()
