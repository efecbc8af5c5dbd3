"""`ckm monitor`: daily files, a state that outlives the command, and what it prints."""

import json
from pathlib import Path

import numpy as np
import pytest
from command import fail, run

import ckm

OPTIONS = ("--reference", 1000, "-m", 40, "--run-length", 100_000)


@pytest.fixture
def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Files of eight days, the last three of which differ."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("days").mkdir()
    paths = []
    for day in range(8):
        rows = rng.normal(size=(700, 2)) * (1.5 if day >= 5 else 1.0)
        paths.append(Path("days") / f"2026-11-{day + 1:02}.csv")
        np.savetxt(paths[-1], rows, delimiter=",", header="a,b", comments="")
    return paths


def changes_in(out: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(out)["changes"]
    return found


def test_a_change_is_reported_with_its_file(days: list[Path]) -> None:
    out, err = run("monitor", "days", *OPTIONS)
    assert "5,600 rows: change" in out
    assert "days/2026-11-06.csv, row" in out
    assert "days/2026-11-01.csv: 700 rows, needs 300 more rows of the reference" in err
    assert "days/2026-11-05.csv: 700 rows, no change" in err
    assert "days/2026-11-06.csv: 700 rows, 1 change" in err


def test_it_says_what_the_library_says(days: list[Path]) -> None:
    [told] = changes_in(run("monitor", "days", *OPTIONS, "--json")[0])
    monitor = ckm.Monitor(reference=1000, sketch_size=40, run_length=100_000, random_state=0)
    [change] = [change for day in days for change in monitor.update(day).changes]
    for name in ("row", "noticed", "window", "statistic", "threshold", "p_value", "effect"):
        assert told[name] == getattr(change, name)


def test_daily_runs_say_what_one_run_says(days: list[Path]) -> None:
    whole = json.loads(run("monitor", "days", *OPTIONS, "--json")[0])
    daily = []
    for number in range(1, len(days) + 1):
        arguments = (*days[:number], *OPTIONS, "--state", "s.monitor", "--json")
        record = json.loads(run("monitor", *arguments)[0])
        assert record["files"] == [str(days[number - 1])]
        daily += record["changes"]
    assert daily == whole["changes"]
    assert record["rows"] == whole["rows"]
    assert record["statistic"] == whole["statistic"]


def test_a_killed_run_continues_with_the_file_it_was_in(
    days: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ("monitor", "days", *OPTIONS, "--state", "s.monitor", "--json")
    expected = changes_in(run(*arguments)[0])
    Path("s.monitor").unlink()
    update = ckm.Monitor.update

    def killed(monitor: ckm.Monitor, batch: object, name: str = "") -> ckm.MonitorStatus:
        status = update(monitor, batch, name)
        if "11-04" in name:
            raise KeyboardInterrupt
        return status

    monkeypatch.setattr(ckm.Monitor, "update", killed)
    run(*arguments, expect=130)
    monkeypatch.setattr(ckm.Monitor, "update", update)
    record = json.loads(run(*arguments)[0])
    assert record["files"] == [str(day) for day in days[3:]]
    assert record["changes"] == expected


def test_a_change_can_fail_a_pipeline(days: list[Path]) -> None:
    run("monitor", *days[:5], *OPTIONS, "--fail-on-change")
    run("monitor", *days, *OPTIONS, "--fail-on-change", expect=1)
    arguments = ("monitor", *days, *OPTIONS, "--fail-on-change", "--state", "s.monitor")
    run(*arguments, expect=1)
    out, err = run(*arguments)
    assert "There is no new file." in err
    assert "no change" in out or "waiting for" in out


def test_an_error_is_not_a_change(days: list[Path]) -> None:
    _, err = run("monitor", "none.csv", *OPTIONS, "--fail-on-change", expect=2)
    assert err.startswith("Error:")
    Path("gap.csv").write_text("a,b\n1,2\n,3\n")
    assert "missing" in run("monitor", "gap.csv", *OPTIONS, expect=2)[1]


def test_a_late_file_is_read_with_a_warning(days: list[Path]) -> None:
    run("monitor", *days[1:3], *OPTIONS, "--state", "s.monitor")
    _, err = run("monitor", *days[:3], *OPTIONS, "--state", "s.monitor")
    assert "Warning: days/2026-11-01.csv is new, but its name comes before" in err
    assert ckm.Monitor.load("s.monitor").rows == 3 * 700


def test_another_sketch_can_be_the_past(days: list[Path]) -> None:
    run("sketch", *days[:5], "-m", 40, "-o", "past.ckm", "-q")
    arguments = (days[5], "--like", "past.ckm", "--reference", 300, "--run-length", 100_000)
    [change] = changes_in(run("monitor", *arguments, "--json")[0])
    assert change["row"] == 0


def test_other_options_and_other_files_are_refused(days: list[Path]) -> None:
    run("monitor", days[0], *OPTIONS, "--state", "s.monitor")
    message = fail("monitor", days[1], "--block", 50, *OPTIONS, "--state", "s.monitor", status=2)
    assert "s.monitor was written with --block 100, and now --block 50 is given" in message
    message = fail("monitor", days[1], *OPTIONS, "--state", days[0], status=2)
    assert "not a state of a monitor" in message
    message = fail("monitor", days[1], *OPTIONS, "--state", days[1], status=2)
    assert "one of the inputs" in message
    message = fail("monitor", days[1], "--dependence", "hours", status=2)
    assert "--dependence must be 'rows' or 'batches'; got 'hours'" in message
