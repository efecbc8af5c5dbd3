"""`Monitor`: what it finds does not depend on batches or interruptions, and false alarms are as
rare as is stated.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import ckm
from ckm._analysis.monitor_file import MONITOR
from ckm._analysis.watching import MIN_BATCHES
from ckm._core.container import pack_container, unpack_container
from ckm.errors import (
    AdviceWarning,
    CheckpointError,
    DataError,
    MismatchError,
    MissingFileError,
    NonFiniteError,
    ParameterError,
)

SMALL = {"reference": 500, "block": 50, "run_length": 20_000, "sketch_size": 30, "random_state": 0}


def changing_stream(seed: int = 0) -> np.ndarray:
    """Three clusters, one of which moves after 2000 rows, and back after 4000."""
    rng = np.random.default_rng(seed)
    label = rng.integers(3, size=6000)
    rows = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])[label] + rng.normal(size=(6000, 2))
    moves = (label == 0) & (np.arange(6000) >= 2000) & (np.arange(6000) < 4000)
    return rows + moves[:, None] * [0.0, 2.0]


def found(change: ckm.Change) -> tuple[Any, ...]:
    """All that a change says, for comparison bit by bit."""
    numbers = (change.statistic, change.threshold, change.p_value, change.effect)
    return (change.row, change.noticed, *numbers, change.before, change.after, change.place)


def said(status: ckm.MonitorStatus) -> tuple[Any, ...]:
    """All that a status says."""
    numbers = (status.statistic, status.threshold, status.p_value)
    facts = (status.rows, status.watching, status.alarm, status.window, status.waiting_for)
    return (*facts, *map(repr, numbers), *map(found, status.changes))


def changes_of(monitor: ckm.Monitor, batches: Iterator[np.ndarray]) -> list[tuple[Any, ...]]:
    return [found(change) for batch in batches for change in monitor.update(batch).changes]


def cut(rows: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Batches of random sizes, some of them empty."""
    cuts = np.sort(np.random.default_rng(seed).integers(len(rows), size=20))
    yield from np.split(rows, cuts)


@pytest.mark.parametrize("on_change", ["restart", "continue"])
@pytest.mark.parametrize("seed", range(3))
def test_any_split_into_batches_finds_the_same_changes(seed: int, on_change: str) -> None:
    rows = changing_stream()
    whole = changes_of(ckm.Monitor(**SMALL, on_change=on_change), iter([rows]))
    assert len(whole) >= 1
    assert changes_of(ckm.Monitor(**SMALL, on_change=on_change), cut(rows, seed)) == whole


def test_a_change_is_found_at_its_time() -> None:
    first, second = ckm.Monitor(**SMALL).update(changing_stream()).changes
    assert abs(first.row - 2000) <= 100
    assert abs(second.row - 4000) <= 100
    assert first.before.count + 500 > 2000 - 100
    assert first.window == first.after.count
    assert first.statistic > first.threshold
    moved = first.after.mean - first.before.mean
    assert abs(moved[1] - 2 / 3) < 0.3
    assert abs(moved[0]) < 0.5


def shifted(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows + 0.5


def widened(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows * 1.5


def turned(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same columns, each by itself, that now depend on each other."""
    return rows @ np.array([[1.0, 0.7], [0.0, np.sqrt(1 - 0.49)]])


def rarely_far(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rows + 8.0 * (rng.random(len(rows)) < 0.15)[:, None]


@pytest.mark.parametrize("change", [shifted, widened, turned, rarely_far])
def test_changes_of_every_kind_are_found(
    change: Callable[[np.ndarray, np.random.Generator], np.ndarray],
) -> None:
    rng = np.random.default_rng(0)
    monitor = ckm.Monitor(**SMALL)
    assert not monitor.update(rng.normal(size=(2000, 2)))
    [noticed, *_] = monitor.update(change(rng.normal(size=(2000, 2)), rng)).changes
    assert abs(noticed.row - 2000) <= 200


@pytest.mark.parametrize("dependence", ["rows", "batches"])
@pytest.mark.parametrize("on_change", ["restart", "continue"])
def test_killed_and_resumed_it_says_the_same(
    tmp_path: Path, dependence: str, on_change: str
) -> None:
    options = {"dependence": dependence, "on_change": on_change}
    batches = np.array_split(changing_stream(), 150)
    through = ckm.Monitor(**SMALL, **options)
    expected = [said(through.update(batch, name=f"day {i}")) for i, batch in enumerate(batches)]
    assert sum(len(status) > 8 for status in expected) >= 1, "a change is found"
    killed = ckm.Monitor(**SMALL, **options)
    for i, batch in enumerate(batches):
        if i % 4 == 1:
            killed.save(tmp_path / "state")
            killed = ckm.Monitor.load(tmp_path / "state")
        assert said(killed.update(batch, name=f"day {i}")) == expected[i]
    assert killed.batches == through.batches


def test_a_state_is_the_same_bytes_after_loading(tmp_path: Path) -> None:
    monitor = ckm.Monitor(**SMALL)
    for batch in cut(changing_stream(), 0):
        monitor.update(batch)
        monitor.save(tmp_path / "one")
        ckm.Monitor.load(tmp_path / "one").save(tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_state_keeps_no_rows_once_the_reference_is_complete(tmp_path: Path) -> None:
    rows = changing_stream().astype(np.float32)
    monitor = ckm.Monitor(**SMALL)
    monitor.update(rows[:499])
    monitor.save(tmp_path / "early")
    assert rows[7].tobytes() in (tmp_path / "early").read_bytes()
    monitor.update(rows[499:1030])
    monitor.save(tmp_path / "late")
    late = (tmp_path / "late").read_bytes()
    assert not any(row.tobytes() in late for row in rows[:1030])


def first_alarm(batches: Iterator[np.ndarray], **options: Any) -> float:
    """The rows to the first alarm after the reference; infinite if there was none."""
    monitor = ckm.Monitor(**(SMALL | options))
    start = None
    for batch in batches:
        status = monitor.update(batch)
        if status.watching and start is None:
            start = status.rows
        if status.changes:
            return status.changes[0].noticed - (start or 0)
    return np.inf


@pytest.mark.slow
@pytest.mark.parametrize("heavy", [False, True])
def test_false_alarms_are_as_rare_as_is_stated(heavy: bool) -> None:
    run_length = 2000
    n_streams = 150

    def stream(seed: int) -> Iterator[np.ndarray]:
        rng = np.random.default_rng(seed)
        draw = rng.standard_cauchy if heavy else rng.normal
        yield from (draw(size=(500 + run_length, 2)) for _ in range(1))

    times = [
        first_alarm(stream(seed), run_length=run_length, random_state=seed)
        for seed in range(n_streams)
    ]
    alarms = int(np.isfinite(times).sum())
    # As many alarms within the run length as geometric times of this mean have, at most; and not
    # fewer than a monitor that waits eight times as long.
    assert alarms <= binom.ppf(0.999, n_streams, 1 - np.exp(-1))
    assert alarms >= binom.ppf(0.001, n_streams, 1 - np.exp(-1 / 8))


def slow_walk(rng: np.random.Generator, n_batches: int, size: int = 50) -> Iterator[np.ndarray]:
    """Batches whose rows depend on each other: each batch has a mean of its own."""
    for _ in range(n_batches):
        yield rng.normal(size=(size, 2)) + 0.7 * rng.normal(size=2)


def test_dependent_rows_need_a_law_between_batches() -> None:
    n_streams = 6
    by_rows = 0
    by_batches = 0
    for seed in range(n_streams):
        batches = list(slow_walk(np.random.default_rng(seed), 2 * MIN_BATCHES))
        by_rows += np.isfinite(first_alarm(iter(batches)))
        by_batches += np.isfinite(first_alarm(iter(batches), dependence="batches"))
    assert by_rows == n_streams, "each batch is a change for independent rows"
    # 30 batches of 50 rows in a run length of 20,000.
    assert by_batches <= binom.ppf(0.999, n_streams, 0.075)


def test_a_change_between_dependent_batches_is_found() -> None:
    rng = np.random.default_rng(0)
    monitor = ckm.Monitor(**SMALL, dependence="batches")
    for batch in slow_walk(rng, 60):
        assert not monitor.update(batch)
    changes = [c for batch in slow_walk(rng, 30) for c in monitor.update(batch + 2.0).changes]
    assert len(changes) == 1
    assert abs(changes[0].row - 3000) <= 200


def test_a_large_first_batch_is_one_batch() -> None:
    rng = np.random.default_rng(0)
    monitor = ckm.Monitor(**SMALL, dependence="batches")
    status = monitor.update(rng.normal(size=(2000, 2)))
    assert status.waiting_for == f"{MIN_BATCHES - 1} more batches of the reference"


def test_the_alarm_stays_until_restart() -> None:
    rows = changing_stream()
    monitor = ckm.Monitor(**SMALL, on_change="continue")
    statuses = [monitor.update(batch) for batch in np.array_split(rows[:4000], 80)]
    assert sum(len(status.changes) for status in statuses) == 1
    assert statuses[-1].alarm
    assert "still changed" in str(statuses[-1])
    restarted = ckm.Monitor(**SMALL)
    restarted.update(rows[:4000])
    assert not restarted.status.alarm


def test_a_sketch_given_as_like_is_the_past() -> None:
    rng = np.random.default_rng(0)
    past = ckm.sketch(rng.normal(size=(20_000, 2)), sketch_size=30, random_state=0)
    options = {name: SMALL[name] for name in ("reference", "block", "run_length")}
    same = ckm.Monitor(**options, like=past)
    assert not same.update(rng.normal(size=(1000, 2)))
    changed = ckm.Monitor(**options, like=past)
    [change] = changed.update(rng.normal((0.5, 0.0), size=(600, 2))).changes
    assert change.row == 0
    assert change.before == past.without_cells()
    fresh = ckm.Monitor(**options, like=past.frequencies)
    assert not fresh.update(rng.normal((0.5, 0.0), size=(1000, 2)))


def test_a_past_of_weighted_rows_is_refused() -> None:
    rng = np.random.default_rng(0)
    past = ckm.sketch(rng.normal(size=(1000, 2)), sketch_size=30, random_state=0)
    weighted = ckm.sketch(np.eye(2), like=past, sample_weight=[0.5, 1.5])
    for sketch in (weighted, past.scaled(0.3)):
        with pytest.raises(ParameterError, match="sketch them without weights"):
            ckm.Monitor(like=sketch)


def test_a_batch_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    rows = changing_stream()
    monitor = ckm.Monitor(**SMALL)
    monitor.update(rows[:1010])
    monitor.save(tmp_path / "before")
    bad = rows[1010:3000].copy()
    bad[1500, 1] = np.nan
    with pytest.raises(NonFiniteError, match="1500"):
        monitor.update(bad)
    with pytest.raises(DataError, match="3 columns where those before had 2"):
        monitor.update(np.ones((5, 3)))
    monitor.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_rows_with_missing_values_can_be_dropped() -> None:
    rows = changing_stream()
    gaps = np.insert(rows, 100, np.nan, axis=0)
    monitor = ckm.Monitor(**SMALL, nan="drop")
    assert monitor.update(gaps).rows == len(rows)


def test_columns_are_matched_by_name() -> None:
    rows = changing_stream()
    frame = pd.DataFrame(rows, columns=["x", "y"])
    monitor = ckm.Monitor(**SMALL)
    monitor.update(frame[:3000])
    swapped = monitor.update(frame[3000:][["y", "x"]])
    assert swapped.rows == 6000
    with pytest.raises(MismatchError, match="the first batch"):
        monitor.update(frame[["x"]])
    by_position = ckm.Monitor(**SMALL)
    assert changes_of(by_position, iter([rows[:3000], rows[3000:]]))[-1][:2] == (
        swapped.changes[-1].row,
        swapped.changes[-1].noticed,
    )


def test_a_change_is_placed_in_a_named_batch() -> None:
    monitor = ckm.Monitor(**SMALL)
    rows = changing_stream()
    monitor.update(rows[:1990], name="monday")
    [change] = monitor.update(rows[1990:3000], name="tuesday").changes
    name, _, row = change.place.partition(", row ")
    assert name == ("tuesday" if change.row >= 1990 else "monday")
    assert int(row.replace(",", "")) == change.row - 1990 * (name == "tuesday")


def test_wide_and_unit_rows_are_watched(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(3, 80))
    for metric in ("euclidean", "cosine"):
        monitor = ckm.Monitor(**SMALL, metric=metric)
        rows = rng.normal(size=(1500, 3)) @ axes + 5
        assert not monitor.update(rows)
        monitor.save(tmp_path / metric)
        resumed = ckm.Monitor.load(tmp_path / metric)
        later = rng.normal((2.0, 0.0, 0.0), size=(1000, 3)) @ axes + 5
        [change, *_] = monitor.update(later).changes
        assert change.row == 1500
        assert found(resumed.update(later).changes[0]) == found(change)


def test_rows_that_never_vary_give_no_alarm_until_they_do() -> None:
    monitor = ckm.Monitor(**SMALL, scale=1.0)
    assert not monitor.update(np.zeros((1000, 2)))
    assert monitor.update(np.ones((100, 2)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": 10}, "reference must be a whole number, at least 100"),
        ({"block": 0}, "block must be a whole number, at least 1"),
        ({"run_length": 100}, "run_length must be a number of rows from 500"),
        ({"run_length": "long"}, "run_length must be a number of rows"),
        ({"dependence": "hours"}, "dependence must be 'rows' or 'batches'; got 'hours'"),
        ({"on_change": None}, "on_change must be 'restart' or 'continue'; got None"),
        ({"projection": np.eye(2)}, "projection must be"),
    ],
)
def test_impossible_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ckm.Monitor(**(SMALL | options))


def test_results_show_themselves() -> None:
    monitor = ckm.Monitor(**SMALL)
    waiting = monitor.update(changing_stream()[:400])
    assert str(waiting) == "400 rows: waiting for 100 more rows of the reference"
    status = monitor.update(changing_stream()[400:4000], name="<week>")
    assert "Changed after row" in str(status)
    assert "<table>" in status._repr_html_()
    assert "&lt;week&gt;, row" in status.changes[0]._repr_html_()
    assert len(repr(status).splitlines()) == 1


@pytest.mark.parametrize(
    ("effect", "shown"),
    [(0.25, "effect 0.25."), (0.0, "effect 0 (not measurable yet from so few rows).")],
)
def test_an_effect_of_zero_is_explained(effect: float, shown: str) -> None:
    status = ckm.Monitor(**SMALL).update(changing_stream())
    changes = (replace(status.changes[0], effect=effect),)
    assert shown in str(replace(status, changes=changes))


def test_damaged_states_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    monitor = ckm.Monitor(**SMALL)
    monitor.update(changing_stream()[:1500])
    monitor.save(path)
    data = path.read_bytes()
    for place in (30, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(CheckpointError):
            ckm.Monitor.load(path)
    path.write_bytes(data[:-100])
    with pytest.raises(CheckpointError, match="truncated"):
        ckm.Monitor.load(path)
    ckm.sketch(np.eye(2), sketch_size=5, scale=1.0).save(tmp_path / "s.ckm")
    with pytest.raises(CheckpointError, match="not a state of a monitor"):
        ckm.Monitor.load(tmp_path / "s.ckm")
    with pytest.raises(MissingFileError):
        ckm.Monitor.load(tmp_path / "nothing")


def test_the_history_is_short_and_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor = ckm.Monitor(**(SMALL | {"block": 2, "run_length": 1e9}))
    monitor.update(rng.normal(size=(4500, 2)))
    assert 512 <= len(monitor.history) < 1024
    assert monitor.history[-1, 0] >= 4490
    assert (monitor.history[:, 1] < 1).all()
    monitor.update(rng.normal(size=(100, 2)) + 3)
    assert len(monitor.found) == 1
    assert monitor.history[:, 1].max() > 1
    axes = monitor.plot(tmp_path / "plot.png").axes[0]
    assert axes.get_title(loc="left") == "1 change"
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def watching_state(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Metadata and tensors of a monitor that watches, to be forged."""
    monitor = ckm.Monitor(**SMALL)
    monitor.update(changing_stream()[:1530], name="day")
    monitor.save(path)
    contents = unpack_container(MONITOR, path.read_bytes(), "state")
    return dict(contents.metadata), dict(contents.tensors)


FORGERIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "level": lambda m, t: m.update(level=2.0),
    "closed": lambda m, t: m.update(closed=-1),
    "levels": lambda m, t: m.update(levels=m["levels"][::-1]),
    "many buckets": lambda m, t: m.update(levels=[0] * len(m["levels"])),
    "counts": lambda m, t: m.update(counts=[0] * len(m["counts"])),
    "no law": lambda m, t: m.update(law=None),
    "negative law": lambda m, t: m["law"].update(first=-1.0),
    "no degrees": lambda m, t: m["law"].update(degrees=0),
    "no block": lambda m, t: m["options"].update(block=0),
    "dependence": lambda m, t: m["options"].update(dependence="hours"),
    "run length": lambda m, t: m["options"].update(run_length=0.0),
    "nan": lambda m, t: m.update(nan="keep"),
    "found": lambda m, t: m.update(found=[[1, -2]]),
    "more sums": lambda m, t: t.update({"parts.sums": t["parts.sums"] * 1000}),
    "directions": lambda m, t: t.update(directions=t["directions"][:, 1:].copy()),
    "infinite directions": lambda m, t: t.update(directions=t["directions"] * np.float32(np.inf)),
    "head": lambda m, t: t.update(head=np.zeros((3, 2))),
    "history": lambda m, t: t.update(history=t["history"] * np.nan),
    "another tensor": lambda m, t: t.update(more=np.zeros(3)),
    "no base": lambda m, t: m.update(has_base=False),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_states_are_refused(tmp_path: Path, name: str) -> None:
    metadata, tensors = watching_state(tmp_path / "state")
    FORGERIES[name](metadata, tensors)
    forged = pack_container(MONITOR, metadata, tensors)
    (tmp_path / "forged").write_bytes(forged)
    with pytest.raises(CheckpointError, match=r"does not hold a valid|is not written"):
        ckm.Monitor.load(tmp_path / "forged")


def test_columns_that_number_or_date_the_rows_are_said() -> None:
    """A change in them is no change of the rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "order_id": 10**6 + np.arange(6000),
            "at": 1_700_000_000 + 60 * np.arange(6000),
            "east": rng.normal(size=6000),
            "north": rng.normal(size=6000),
        }
    )
    with pytest.warns(AdviceWarning, match=r"order_id, at number .* columns=\['east', 'north'\]"):
        ckm.Monitor(random_state=0).update(frame)
    # Without a warning, which would be an error here.
    ckm.Monitor(columns=["east", "north"], random_state=0).update(frame)
    ckm.Monitor(random_state=0).update(frame.to_numpy())
