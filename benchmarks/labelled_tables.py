"""Thirty tables of many shapes, with what a person who knows them would say of each column, written
down before there was any advice to compare with.

Each numeric column is an id, a timestamp, a constant, a code (whole numbers that stand for names,
or for steps too few to measure), a boolean, a copy of another column, or ordinary: something to
measure distances by. Where people would disagree, all their answers are right. `standardize` says
whether the columns that remain should be standardised before distances are measured (None: as one
likes).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks import customer_table
from benchmarks.data import nycflights13

ID = frozenset({"id"})
TIME = frozenset({"timestamp"})
CONSTANT = frozenset({"constant"})
CODE = frozenset({"code"})
BOOLEAN = frozenset({"boolean"})
COPY = frozenset({"copy"})
ORDINARY = frozenset({"ordinary"})
# Small counts and steps of a scale are measured by some and counted as codes by others.
FEW = CODE | ORDINARY

Labels = Mapping[str, frozenset[str]]


class LabelledTable(NamedTuple):
    """A table, and what is right to say of it.

    `labels` are those of columns that are not plainly ordinary; of two copies, the second is one.
    `may_leave_out` are the columns that may be left out without being asked.
    """

    name: str
    load: Callable[[], pa.Table]
    labels: Labels
    standardize: bool | None
    may_leave_out: frozenset[str] = frozenset()


def _table(**columns: object) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([24, seed])


def _mixture(rng: np.random.Generator, count: int, n: int) -> np.ndarray:
    return 4 * rng.standard_normal((5, n))[rng.integers(5, size=count)] + rng.standard_normal(
        (count, n)
    )


def customers() -> pa.Table:
    return customer_table.whole_table(20_000)[0]


def orders() -> pa.Table:
    """Order numbers with gaps, and the customers who ordered, who come again."""
    rng = _rng(1)
    n = 8000
    return _table(
        order_id=50_000 + np.cumsum(rng.integers(1, 4, n)),
        customer_id=rng.integers(10_000, 99_999, n),
        quantity=1 + rng.poisson(2, n),
        price=np.round(rng.lognormal(3, 1, n), 2),
        weight_kg=np.round(rng.gamma(2, 1.5, n), 3),
    )


def sensors() -> pa.Table:
    """Readings with milliseconds since 1970, in order."""
    rng = _rng(2)
    n = 6000
    return _table(
        time=1_700_000_000_000 + np.cumsum(rng.integers(200, 300, n)),
        sensor=rng.integers(1, 9, n),
        temperature=20 + 3 * rng.standard_normal(n),
        humidity=50 + 8 * rng.standard_normal(n),
        vibration=rng.gamma(2, 0.1, n),
    )


def plain() -> pa.Table:
    X = _mixture(_rng(3), 5000, 8)
    return _table(**{f"x{i}": X[:, i] for i in range(8)})


def units() -> pa.Table:
    """The same in millimetres, metres and kilometres."""
    X = _mixture(_rng(4), 5000, 4) * [1e3, 1.0, 1e-3, 1.0]
    return _table(width_mm=X[:, 0], depth_m=X[:, 1], height_km=X[:, 2], offset_m=X[:, 3])


def shuffled() -> pa.Table:
    """Rows that were numbered and then shuffled."""
    rng = _rng(5)
    X = _mixture(rng, 4000, 3)
    return _table(a=X[:, 0], b=X[:, 1], c=X[:, 2], number=rng.permutation(4000))


def written_index() -> pa.Table:
    """What pandas writes to CSV unless it is told otherwise."""
    X = _mixture(_rng(6), 3000, 3)
    return _table(**{"Unnamed: 0": np.arange(3000), "u": X[:, 0], "v": X[:, 1], "w": X[:, 2]})


def constants() -> pa.Table:
    X = _mixture(_rng(7), 3000, 3)
    return _table(
        version=np.full(3000, 3), a=X[:, 0], b=X[:, 1], c=X[:, 2], factor=np.full(3000, 0.25)
    )


def copies() -> pa.Table:
    """The same temperature in two units, and a column that was joined twice."""
    rng = _rng(8)
    celsius = 15 + 8 * rng.standard_normal(4000)
    pressure = 1000 + 10 * rng.standard_normal(4000)
    return _table(
        celsius=celsius,
        fahrenheit=32 + 1.8 * celsius,
        pressure=pressure,
        wind=rng.gamma(2, 2, 4000),
        pressure_right=pressure,
    )


def survey() -> pa.Table:
    """Answers from 1 to 5 to twelve questions."""
    rng = _rng(9)
    kinds = rng.integers(1, 6, (4, 12))
    answers = kinds[rng.integers(4, size=3000)] + np.rint(rng.standard_normal((3000, 12)))
    answers = np.clip(answers, 1, 5).astype(np.int64)
    return _table(**{f"q{i + 1}": answers[:, i] for i in range(12)})


def flags() -> pa.Table:
    """Booleans as 0 and 1, and as such."""
    rng = _rng(10)
    X = _mixture(rng, 4000, 2)
    return _table(
        age=np.rint(45 + 3 * X[:, 0]),
        score=X[:, 1],
        is_member=rng.integers(0, 2, 4000),
        has_app=rng.random(4000) < 0.3,
        churned=(rng.random(4000) < 0.1).astype(float),
    )


def stocks() -> pa.Table:
    """Dates as 20240131, prices that nearly agree, and volumes in pieces."""
    rng = _rng(11)
    days = np.arange(np.datetime64("2014-01-01"), np.datetime64("2022-01-01"))
    date = np.array([int(str(day).replace("-", "")) for day in days])
    close = 100 * np.exp(np.cumsum(0.01 * rng.standard_normal(len(days))))
    around = close[:, None] * (1 + 0.01 * rng.standard_normal((len(days), 3)))
    return _table(
        date=date,
        open=around[:, 0],
        high=around.max(axis=1),
        low=around.min(axis=1),
        close=close,
        volume=rng.lognormal(14, 0.5, len(days)).astype(np.int64),
    )


def embeddings() -> pa.Table:
    X = _mixture(_rng(12), 3000, 32).astype(np.float32)
    return _table(**{f"e{i}": X[:, i] for i in range(32)})


def cities() -> pa.Table:
    """Cities sorted by population: whole numbers, unique, in order, with all of the variance."""
    rng = _rng(13)
    population = np.unique((20_000 * (1 - rng.random(4000)) ** -0.9).astype(np.int64))[::-1]
    n = len(population)
    return _table(
        population=population,
        lat=rng.uniform(-50, 65, n),
        lon=rng.uniform(-180, 180, n),
        elevation=rng.gamma(1, 300, n),
    )


def hashes() -> pa.Table:
    """Keys of 60 random bits."""
    rng = _rng(14)
    X = _mixture(rng, 5000, 3)
    return _table(key=rng.integers(0, 2**60, 5000), a=X[:, 0], b=X[:, 1], c=X[:, 2])


def patients() -> pa.Table:
    """Five visits of each patient, one after the other."""
    rng = _rng(15)
    n = 1000
    patient = np.repeat(np.arange(7000, 7000 + n), 5)
    level = np.repeat(rng.normal(120, 15, n), 5)
    return _table(
        patient_id=patient,
        visit=np.tile(np.arange(1, 6), n),
        systolic=level + rng.normal(0, 6, 5 * n),
        diastolic=0.6 * level + rng.normal(0, 5, 5 * n),
        pulse=rng.normal(70, 9, 5 * n),
    )


def households() -> pa.Table:
    """Incomes beside small numbers."""
    rng = _rng(16)
    n = 6000
    return _table(
        income=np.rint(rng.lognormal(10.4, 0.6, n)),
        age=np.rint(rng.uniform(20, 85, n)),
        children=rng.poisson(1.2, n),
        owns_home=rng.integers(0, 2, n),
        region=rng.integers(1, 10, n),
    )


def unsorted_events() -> pa.Table:
    """Seconds since 1970 with fractions, in no order."""
    rng = _rng(17)
    n = 5000
    return _table(
        duration=rng.gamma(2, 30, n),
        bytes_sent=rng.lognormal(8, 1.5, n),
        happened_at=1.6e9 + rng.random(n) * 3e7,
    )


def nanoseconds() -> pa.Table:
    """Nanoseconds since 1970, as pandas has them inside."""
    rng = _rng(18)
    n = 4000
    X = _mixture(rng, n, 2)
    start = 1_650_000_000_000_000_000
    return _table(ts=start + np.cumsum(rng.integers(10**9, 10**11, n)), x=X[:, 0], y=X[:, 1])


def _from_sklearn(name: str) -> pa.Table:
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")(as_frame=True)
    return pa.Table.from_pandas(bunch.data, preserve_index=False)


def _from_river(file: str) -> pa.Table:
    from pathlib import Path

    import pandas as pd
    import river.datasets

    frame = pd.read_csv(Path(river.datasets.__file__).parent / file)
    return pa.Table.from_pandas(frame, preserve_index=False)


def _from_nycflights(name: str) -> pa.Table:
    return pa.Table.from_pandas(nycflights13(name), preserve_index=False)


# Pixels on the edges of the images are empty, or nearly so; all others are shades from 0 to 16.
DIGIT_LABELS: Labels = {
    **{f"pixel_{i}_{j}": ORDINARY | CONSTANT | FEW for i in range(8) for j in (0, 7)},
    "pixel_0_0": CONSTANT,
    "pixel_4_0": CONSTANT,
    "pixel_4_7": CONSTANT,
    "pixel_3_0": BOOLEAN | CONSTANT | ORDINARY,
    "pixel_3_7": BOOLEAN | CONSTANT | FEW,
    "pixel_5_0": BOOLEAN | CONSTANT | FEW,
    "pixel_7_0": BOOLEAN | CONSTANT | FEW,
}

TABLES = (
    LabelledTable(
        "customers",
        customers,
        {
            "customer_id": ID,
            "signup": TIME,
            "last_seen": TIME,
            "newsletter": BOOLEAN,
            "rating": FEW,
        },
        True,
        frozenset({"customer_id"}),
    ),
    LabelledTable(
        "orders",
        orders,
        {"order_id": ID, "customer_id": ID, "quantity": FEW},
        True,
        frozenset({"order_id"}),
    ),
    LabelledTable("sensors", sensors, {"time": TIME, "sensor": CODE}, True),
    LabelledTable("plain", plain, {}, False),
    LabelledTable("units", units, {}, True),
    LabelledTable("shuffled", shuffled, {"number": ID}, None, frozenset({"number"})),
    LabelledTable(
        "written index", written_index, {"Unnamed: 0": ID}, False, frozenset({"Unnamed: 0"})
    ),
    LabelledTable("constants", constants, {"version": CONSTANT, "factor": CONSTANT}, False),
    LabelledTable(
        "copies",
        copies,
        {"fahrenheit": COPY, "pressure_right": COPY},
        None,
    ),
    LabelledTable("survey", survey, {f"q{i}": FEW for i in range(1, 13)}, False),
    LabelledTable(
        "flags",
        flags,
        {"is_member": BOOLEAN, "has_app": BOOLEAN, "churned": BOOLEAN},
        True,
    ),
    LabelledTable("stocks", stocks, {"date": TIME}, True),
    LabelledTable("embeddings", embeddings, {}, False),
    LabelledTable("cities", cities, {}, True),
    LabelledTable("hashes", hashes, {"key": ID}, False),
    LabelledTable("patients", patients, {"patient_id": ID, "visit": FEW}, None),
    LabelledTable(
        "households",
        households,
        {"children": FEW, "owns_home": BOOLEAN, "region": CODE},
        True,
    ),
    LabelledTable("unsorted events", unsorted_events, {"happened_at": TIME}, True),
    LabelledTable("nanoseconds", nanoseconds, {"ts": TIME}, False),
    LabelledTable("iris", partial(_from_sklearn, "iris"), {}, None),
    LabelledTable("wine", partial(_from_sklearn, "wine"), {}, True),
    LabelledTable("breast cancer", partial(_from_sklearn, "breast_cancer"), {}, True),
    LabelledTable("digits", partial(_from_sklearn, "digits"), DIGIT_LABELS, False),
    LabelledTable(
        "chick weights",
        partial(_from_river, "chick-weights.csv"),
        # Days from 0 to 21, of which twelve occur; the chicks are numbered from 1 to 50.
        {"time": TIME | FEW, "chick": ID | CODE, "diet": CODE},
        None,
    ),
    LabelledTable("stock returns", partial(_from_river, "sp500.csv.gz"), {}, False),
    LabelledTable(
        "solar flares",
        partial(_from_river, "solar-flare.csv.zip"),
        {
            "activity": BOOLEAN | CODE,
            "evolution": FEW,
            "previous-24h-flare-activity": FEW,
            "hist-complex": BOOLEAN | CODE,
            "hist-complex-this-pass": BOOLEAN | CODE,
            "area": BOOLEAN | CODE,
            "largest-spot-area": CONSTANT,
            "c-class-flares": FEW,
            "m-class-flares": FEW,
            "x-class-flares": FEW,
        },
        None,
    ),
    LabelledTable(
        "approval polls",
        partial(_from_river, "trump_approval.csv.gz"),
        {"ordinal_date": TIME | ID},
        False,
        frozenset({"ordinal_date"}),
    ),
    LabelledTable(
        "flights",
        partial(_from_nycflights, "flights"),
        {
            "year": CONSTANT,
            "month": FEW | TIME,
            "day": FEW | TIME,
            "hour": FEW | TIME,
            "minute": FEW | TIME,
            # The number of a flight, which a plane flies every day.
            "flight": ID | CODE | ORDINARY,
        },
        True,
    ),
    LabelledTable(
        "weather",
        partial(_from_nycflights, "weather"),
        {
            "year": CONSTANT,
            "month": FEW | TIME,
            "day": FEW | TIME,
            "hour": FEW | TIME,
            # Tens of degrees, and steps of a scale from 0 to 10 miles.
            "wind_dir": FEW,
            "visib": FEW,
        },
        True,
    ),
    LabelledTable("airports", partial(_from_nycflights, "airports"), {"tz": FEW}, True),
)
