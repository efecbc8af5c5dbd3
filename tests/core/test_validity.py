"""A file with a correct checksum may still be forged: what loads is a sketch that decodes."""

from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_tensors
from sketch_files import forge, forgeries

import ckm
from ckm._core.storage import deserialise, serialise
from ckm.errors import CkmError, ParameterError, SketchFileError

FORGERIES = 600  # of each sketch
DECODED = 3  # of those that load, which takes far longer than loading


def rows(n: int = 2) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(size=(60, n)), rng.normal(size=(60, n)) + 8])


def sketched(X: np.ndarray, **options: Any) -> ckm.Sketch:
    return ckm.sketch(X, **({"sketch_size": 20, "random_state": 0, "n_jobs": 1} | options))


SKETCHES = {
    "plain": lambda: sketched(rows()),
    "pool": lambda: sketched(rows(), pool=10),
    "standardized": lambda: sketched(rows(), standardize=True),
    "weighted": lambda: sketched(rows(), pool=10, sample_weight=np.arange(120) / 7 + 0.1),
    "structured": lambda: sketched(rows(), distribution="structured"),
    "diagonal moments, complete pool": lambda: sketched(rows(5), pool=200),
    "empty": lambda: ckm.Sketch.empty(ckm.draw_frequencies(20, 2)),
}


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", SKETCHES.values(), ids=SKETCHES)
def test_a_forged_sketch_is_refused_or_decodes(make: Any) -> None:
    data = serialise(make())
    loaded = []
    for name, forged in forgeries(data, FORGERIES):
        try:
            loaded.append((name, deserialise(forged, name)))
        except SketchFileError:
            continue
    for name, sketch in loaded[:DECODED]:
        try:
            solution = ckm.decode(sketch, 2, random_state=0, n_jobs=1)
        except CkmError:
            continue
        assert np.isfinite(solution.centroids).all(), name


DATA = serialise(SKETCHES["weighted"]())
T = load_tensors(DATA)
SECOND = T["second"]


@pytest.mark.parametrize(
    ("metadata", "tensors", "reason"),
    [
        ({"scale": 1e-308}, {}, "scale must be a variance from 1e-90"),
        ({"scale": 1e-80}, {}, "cannot be for scale="),
        ({"scale": 1e80}, {}, "cannot be for scale="),
        ({"spread": 1e200}, {}, "spread must be a variance"),
        ({"distribution": "uniform"}, {}, "no frequency distribution 'uniform'"),
        ({"distribution": "structured"}, {}, "do not go together"),
        ({}, {"turns": T["turns"] * np.float32(1e30)}, "cannot be for scale="),
        ({}, {"turns": T["turns"].astype(np.float64)}, "turns must be <f4"),
        ({}, {"units": np.full(2, 1e300)}, "units must be 2 positive numbers"),
        ({}, {"origin": np.full(2, 1e100)}, "too far from the origin"),
        ({}, {"upper": np.full(2, 1e39)}, "too far from the origin"),
        ({}, {"sums": np.full_like(T["sums"], 1000 * 2.0**22)}, "sums are larger"),
        ({}, {"first": 50 * T["first"] + 1e6}, "moments are not"),
        ({}, {"second": -SECOND}, "moments are not"),
        ({}, {"second": 1e3 * SECOND}, "moments are not"),
        ({}, {"second": SECOND + np.array([[0, 1e4], [0, 0]])}, "moments are not"),
        ({}, {"second": SECOND + np.array([[0, 1e5], [1e5, 0]])}, "moments are not"),
        ({"weight": 1e250}, {}, "weights of the rows add up to 1e"),
        ({"weight": 1e-250}, {}, "weights of the rows add up to 1e"),
        ({"count": 2**63}, {}, "more than a sketch can count"),
        ({}, {"pool.rows": T["pool.rows"] + 100}, "pool's rows are not within the bounds"),
        ({}, {"pool.weights": T["pool.weights"] * 1000}, "odds do not fit"),
        ({}, {"pool.odds": T["pool.odds"] * 1e10}, "keys do not fit its odds"),
        ({}, {"pool.keys": np.zeros(10)}, "keys do not fit its odds"),
        ({"pool": {"capacity": 10, "seen": 119}}, {}, "pool does not fit"),
    ],
)
def test_each_field_is_checked(
    metadata: dict[str, Any], tensors: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SketchFileError, match=reason):
        deserialise(forge(DATA, metadata, tensors))


def test_an_exact_sketch_of_more_rows_than_int64_holds_is_refused() -> None:
    data = serialise(SKETCHES["plain"]())
    with pytest.raises(SketchFileError, match="more than exact sums can hold"):
        deserialise(forge(data, {"count": 2**42, "weight": 2.0**42}))


def test_variances_cannot_be_smaller_than_the_bounds_require() -> None:
    data = serialise(sketched(rows()[:10]))
    mean = load_tensors(data)["first"] / 10
    with pytest.raises(SketchFileError, match="variances are too small for the bounds"):
        deserialise(forge(data, tensors={"second": 10 * np.outer(mean, mean)}))


@pytest.mark.parametrize("scale", [1e-100, 1e-80, 9e89, 1e100, 1e300])
def test_frequencies_that_would_not_load_are_not_drawn(scale: float) -> None:
    with pytest.raises(ParameterError, match="scale"):
        ckm.draw_frequencies(20, 2, scale=scale)


@pytest.mark.parametrize("scale", [1e-70, 1e-30, 1.0, 1e30, 1e76])
@pytest.mark.parametrize("law", ["multiscale", "structured", "gaussian", "adapted-radius"])
@pytest.mark.parametrize("m", [1, 2, 200])
def test_frequencies_of_every_law_load(scale: float, law: str, m: int) -> None:
    for spread in (None, scale / 10, 1e9 * scale):
        for seed in range(5):
            f = ckm.draw_frequencies(m, 3, scale=scale, distribution=law, spread=spread, seed=seed)
            empty = ckm.Sketch.empty(f)
            assert deserialise(serialise(empty)) == empty


@pytest.mark.parametrize("weight", [1e-320, 1e-300, 1e-120, 1.0, 1e90])
@pytest.mark.parametrize("pool", [5, pytest.param(500, marks=pytest.mark.slow)])
def test_sketches_with_some_extreme_weights_load(weight: float, pool: int) -> None:
    weights = np.ones(120)
    weights[7:60] = weight
    s = sketched(rows(), sample_weight=weights, pool=pool)
    assert deserialise(serialise(s)) == s
    assert np.isfinite(ckm.decode(s, 2, random_state=0, n_jobs=1).centroids).all()


@pytest.mark.parametrize("keys", [np.zeros(120), np.full(120, 5e-324), np.full(120, 1e-300)])
def test_keys_of_a_complete_pool_are_checked_too(keys: np.ndarray) -> None:
    """They decide what a sum with other rows keeps, and what those rows stand for."""
    data = serialise(sketched(rows(), pool=200))
    with pytest.raises(SketchFileError, match="keys do not fit its odds"):
        deserialise(forge(data, tensors={"pool.keys": keys}))
