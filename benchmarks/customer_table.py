"""A table of customers as companies have them, made from a seed: ids in order, timestamps, text,
booleans, missing values, heavy-tailed amounts, a rating, and six true segments.

The segments differ in the logarithms of `amount` and `visits`, in `age`, `discount` and `rating`;
everything else is the same in all of them. They are not a column of the table.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

FIRST_ID = 1_000_001
FIRST_SIGNUP = 1_420_070_400  # seconds: 2015-01-01
LAST_SIGNUP = 1_735_689_600  # seconds: 2025-01-01
CHUNK_ROWS = 250_000
COUNTRIES = ("DE", "FR", "US", "GB", "IT", "ES", "NL", "PL", "SE", "JP")
PLANS = ("free", "basic", "plus", "business")
# Share of amounts that are multiplied, and by how much: company purchases in a private account.
RARE_SHARE = 0.004
RARE_FACTOR = 25.0

SEGMENTS = ("newcomers", "regulars", "bargain hunters", "loyal", "lapsed", "big accounts")
SHARES = np.array([0.15, 0.30, 0.20, 0.15, 0.12, 0.08])
AMOUNTS = np.array([30.0, 180.0, 70.0, 900.0, 60.0, 6000.0])  # medians
VISITS = np.array([2.0, 12.0, 9.0, 45.0, 3.0, 60.0])  # medians
AGES = np.array([27.0, 41.0, 35.0, 52.0, 60.0, 46.0])
DISCOUNTS = np.array([0.25, 0.10, 0.55, 0.06, 0.12, 0.18])
RATINGS = np.array([4.1, 4.1, 3.6, 4.6, 3.3, 4.2])

# The numeric columns that say something about a customer, and which of them have heavy tails.
USEFUL = ("newsletter", "age", "visits", "amount", "discount", "rating")
HEAVY = ("visits", "amount")


def tables(
    n_rows: int, seed: int = 0, *, missing: float = 0.0, chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[pa.Table, np.ndarray]]:
    """Yield the table in chunks, each with the true segment of its rows.

    `missing` is the share of ages that are missing; a third of the plans always is.
    """
    for number, low in enumerate(range(0, n_rows, chunk_rows)):
        count = min(chunk_rows, n_rows - low)
        yield _chunk(low, count, n_rows, np.random.default_rng([seed, number]), missing)


def _chunk(
    low: int, count: int, n_rows: int, rng: np.random.Generator, missing: float
) -> tuple[pa.Table, np.ndarray]:
    segment = rng.choice(len(SEGMENTS), count, p=SHARES)
    rows = np.arange(low, low + count)
    every = (LAST_SIGNUP - FIRST_SIGNUP) / n_rows
    signup = FIRST_SIGNUP + ((rows + rng.random(count)) * every).astype(np.int64)
    since = rng.random(count) ** 2 * (LAST_SIGNUP - signup)
    amount = AMOUNTS[segment] * np.exp(0.7 * rng.standard_normal(count))
    amount *= np.where(rng.random(count) < RARE_SHARE, RARE_FACTOR, 1.0)
    visits = VISITS[segment] * np.exp(0.5 * rng.standard_normal(count))
    age = np.clip(AGES[segment] + 7 * rng.standard_normal(count), 18, 99)
    strength = 25.0
    discount = rng.beta(strength * DISCOUNTS[segment], strength * (1 - DISCOUNTS[segment]))
    rating = np.clip(np.rint(RATINGS[segment] + 0.8 * rng.standard_normal(count)), 1, 5)
    country = np.array(COUNTRIES)[rng.choice(len(COUNTRIES), count, p=_falling(len(COUNTRIES)))]
    plan = np.array(PLANS)[rng.choice(len(PLANS), count, p=_falling(len(PLANS)))]
    has_no_plan = rng.random(count) < 1 / 3
    has_no_age = rng.random(count) < missing
    table = pa.table(
        {
            "customer_id": pa.array(FIRST_ID + rows),
            "signup": pa.array(signup * 1_000_000, pa.timestamp("us")),
            "last_seen": pa.array((LAST_SIGNUP - since).astype("M8[s]").astype("M8[D]")),
            "country": pa.array(country),
            "plan": pa.array(plan, mask=has_no_plan),
            "newsletter": pa.array(rng.random(count) < 0.4),
            "age": pa.array(np.round(age, 1), mask=has_no_age),
            "visits": pa.array(1 + visits.astype(np.int64)),
            "amount": pa.array(np.round(amount, 2)),
            "discount": pa.array(np.round(discount, 4)),
            "rating": pa.array(rating.astype(np.int8)),
        }
    )
    return table, segment


def _falling(count: int) -> np.ndarray:
    """Return shares of `count` categories, the first being the most frequent."""
    shares = 1 / np.arange(1, count + 1)
    return shares / shares.sum()


def whole_table(n_rows: int, seed: int = 0, *, missing: float = 0.0) -> tuple[pa.Table, np.ndarray]:
    """Return the table in memory, and the true segments."""
    parts = list(tables(n_rows, seed, missing=missing))
    return pa.concat_tables([part for part, _ in parts]), np.concatenate([own for _, own in parts])


def write(
    path: Path, n_rows: int, seed: int = 0, *, missing: float = 0.0, chunk_rows: int = CHUNK_ROWS
) -> None:
    """Write the table to a file, chunk by chunk: `.parquet` or `.csv`."""
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    writer = None
    for table, _ in tables(n_rows, seed, missing=missing, chunk_rows=chunk_rows):
        if writer is None:
            make = pq.ParquetWriter if path.suffix == ".parquet" else pc.CSVWriter
            writer = make(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
