"""Which sketches and checkpoints can exist, written without the library's own checks.

Rows x with weights beta > 0 between bounds have a mean between them, variances of at most
(upper - mean) (mean - lower), and sums of length at most the total weight. Tolerances are those of
sums of many rounded numbers; they are far below what a decoder could notice.
"""

import math
from typing import Any

import numpy as np

import ckm

UNIT = 2.0**-22
TOLERANCE = 1e-5
LAWS = ("gaussian", "folded-gaussian", "adapted-radius", "multiscale", "structured", "broad")
OPTIONS = {
    "n_clusters",
    "sketch_size",
    "scale",
    "distribution",
    "standardize",
    "metric",
    "projection",
    "cells",
    "sample_weight",
    "like",
    "columns",
    "weight_column",
    "nan",
    "pool",
    "device",
    "random_state",
}


def assert_possible_sketch(s: ckm.Sketch) -> None:
    """Some rows have this sketch."""
    f = s.frequencies
    m, n = f.m, f.n
    assert f.distribution in LAWS
    assert f.turns.dtype == np.float32
    assert np.isfinite(f.turns).all()
    assert np.isfinite(f.origin).all()
    assert f.origin.shape == (n,)
    assert 1e-90 <= f.scale <= 1e90
    assert f.spread is None or 1e-90 <= f.spread <= 1e90
    assert f.metric in ("euclidean", "cosine")
    assert f.metric == "euclidean" or f.column_units is None
    assert f.seed is None or (type(f.seed) is int and 0 <= f.seed < 2**64)
    if f.units is not None:
        assert f.units.shape == (n,)
        assert (f.units > 0).all()
        assert np.isfinite(f.units).all()
    if f.signs is not None:
        assert set(np.unique(f.signs)) <= {-1, 1}
    if s.columns is not None:
        assert len(s.columns) == n
        assert all(type(name) is str for name in s.columns)
    t = s.tally
    assert type(t.count) is int
    assert 0 <= t.count < 2**63
    assert t.sums.shape == (2, m)
    if t.count == 0:
        assert t.weight == 0
        assert not t.sums.any()
        assert not t.first.any()
        assert not t.second.any()
        assert (t.lower == np.inf).all()
        assert (t.upper == -np.inf).all()
        assert s.pool is None or len(s.pool.rows) == s.pool.seen == 0
        return
    assert 1e-200 <= t.weight <= 1e200
    if t.sums.dtype.kind == "i":
        assert t.weight == t.count
    lengths = np.hypot(*(t.sums.astype(float) * UNIT))
    assert (lengths <= t.weight * (1 + TOLERANCE)).all()
    _assert_possible_moments(s)
    if s.pool is not None:
        _assert_possible_pool(s)
    if s.cells is not None:
        _assert_possible_cells(s)


def _assert_possible_cells(s: ckm.Sketch) -> None:
    """Every row is in one cell, and cells have means and squares that rows can have."""
    f = s.frequencies
    t = s.tally
    a = s.cells.anchors
    assert np.isfinite(a.values).all()
    assert len(a.values)
    total = sum(map(float, s.cells.mass))
    assert math.isclose(total, t.weight, rel_tol=TOLERANCE)
    reach = np.maximum(np.abs(t.lower - f.origin), np.abs(t.upper - f.origin))
    for mass, sums, square in zip(*s.cells.arrays, strict=True):
        assert mass >= 0
        if mass == 0:
            assert square == 0
            assert not sums.any()
            continue
        mean = np.array([float(x) for x in sums]) * 2.0**-a.exponents / float(mass)
        slack = 2.0**-a.exponents + 10 * TOLERANCE * reach
        assert (mean >= t.lower - f.origin - slack).all()
        assert (mean <= t.upper - f.origin + slack).all()
        length = float(square) * 2.0**-a.square_exponent / float(mass)
        room = 2.0**-a.square_exponent + 10 * TOLERANCE * ((reach * a.metric) ** 2).sum()
        assert ((mean * a.metric) ** 2).sum() - room <= length
        assert length <= ((reach * a.metric) ** 2).sum() + room


def _assert_possible_moments(s: ckm.Sketch) -> None:
    t = s.tally
    origin = s.frequencies.origin
    lower = t.lower - origin
    upper = t.upper - origin
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert (lower <= upper).all()
    # Numbers below those of float32 count as zero.
    reach = np.maximum(np.maximum(np.abs(lower), np.abs(upper)), 1e-44)
    assert (reach < 3.5e38).all()
    mean = t.first / t.weight
    assert (mean >= lower - TOLERANCE * reach).all()
    assert (mean <= upper + TOLERANCE * reach).all()
    second = t.second / t.weight
    squares = np.diag(second) if second.ndim == 2 else second
    variances = squares - mean**2
    most = np.maximum((upper - mean) * (mean - lower), 0)
    slack = TOLERANCE * reach**2
    assert (variances >= -slack).all()
    assert (variances <= most + slack).all()
    if second.ndim == 2:
        relative = (second - np.outer(mean, mean)) / np.outer(reach, reach)
        assert np.abs(relative - relative.T).max() <= 2 * TOLERANCE
        assert np.linalg.eigvalsh((relative + relative.T) / 2).min() >= -TOLERANCE * len(mean)


def _assert_possible_pool(s: ckm.Sketch) -> None:
    pool = s.pool
    t = s.tally
    assert pool is not None
    size = min(pool.capacity, pool.seen)
    assert pool.capacity >= 1
    assert pool.seen >= t.count
    assert pool.rows.shape == (size, s.frequencies.n)
    assert (pool.rows >= t.lower).all()
    assert (pool.rows <= t.upper).all()
    for values in (pool.weights, pool.odds, pool.keys):
        assert values.shape == (size,)
        assert np.isfinite(values).all()
        assert (values >= 0).all()
    assert (pool.weights > 0).all()
    assert (pool.odds > 0).all()
    assert (np.diff(pool.keys) >= 0).all()
    assert pool.weights.sum() <= t.weight * (1 + TOLERANCE)
    if t.sums.dtype.kind == "i":
        assert pool.seen == t.count
        assert (pool.weights == 1).all()


def assert_possible_checkpoint(found: Any) -> None:
    """A pass over some files can have stopped there."""
    s = found.sketch
    assert_possible_sketch(s)
    assert s.tally.tight
    assert found.files
    for name, size, stamp in found.files:
        assert type(name) is str
        assert name
        assert "\0" not in name
        assert type(size) is int
        assert 0 <= size < 2**63
        assert type(stamp) is int
        assert -(2**63) <= stamp < 2**64
    part, row, byte = found.place
    assert all(type(number) is int for number in found.place)
    assert 0 <= part < len(found.files)
    assert 1 <= row <= found.rows
    assert part or row == found.rows
    is_text = found.files[part][0].split("::")[0].lower().endswith((".csv", ".tsv"))
    assert byte >= 0
    assert not is_text or row <= byte <= found.files[part][1]
    kept = found.rows - found.dropped
    assert 0 <= found.dropped <= found.rows
    assert s.count <= kept
    assert s.count == kept or not s.exact
    assert 1 <= found.blocks <= found.rows
    _assert_possible_options(found)


def _assert_possible_options(found: Any) -> None:
    o = found.options
    s = found.sketch
    f = s.frequencies
    assert set(o) == OPTIONS
    assert o["nan"] in ("error", "drop")
    assert o["nan"] == "drop" or not found.dropped
    assert o["distribution"] in LAWS
    assert o["scale"] == "auto" or o["scale"] == f.scale
    assert type(o["standardize"]) is bool
    assert not o["standardize"] or f.units is not None
    assert o["metric"] in ("euclidean", "cosine")
    assert f.metric == o["metric"] or (o["like"] is not None and o["metric"] == "euclidean")
    assert type(o["pool"]) is int
    assert o["pool"] == (0 if s.pool is None else s.pool.capacity)
    assert s.pool is None or s.pool.seen == s.count
    for name in ("n_clusters", "sketch_size"):
        assert o[name] is None or (type(o[name]) is int and o[name] >= 1)
    assert type(o["random_state"]) is int
    if o["like"] is None:
        assert o["random_state"] == f.seed
        assert f.m == (o["sketch_size"] or 5 * (o["n_clusters"] or math.nan) * f.n)
    else:
        assert o["like"] == f.fingerprint
    assert o["columns"] is None or tuple(o["columns"]) == s.columns
    assert o["weight_column"] is None or type(o["weight_column"]) is str
    assert s.columns is None or o["weight_column"] not in s.columns
