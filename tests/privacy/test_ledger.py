"""A ledger counts every release, says what was spent in all, and is never silently wrong."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from ckm._core.budget import Budget
from ckm._privacy.ledger import Ledger, LedgerEntry
from ckm.errors import LedgerError, OutputError, ParameterError

ONE = Budget.of(1.0, 1e-6)
FIRST = "a1b2c3d4e5f60718"
SECOND = "0918273645aabbcc"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def test_releases_of_the_same_sketch_add_up(path):
    ledger = Ledger(path)
    assert ledger.record(LedgerEntry(FIRST, ONE)).budgets == (ONE,)
    assert ledger.record(LedgerEntry(SECOND, ONE)).budgets == (ONE,)
    twice = Ledger(path).record(LedgerEntry(FIRST, ONE))
    assert twice.n_releases == 2
    assert twice.budgets == (ONE.together(ONE),)
    assert "2 releases with epsilon = 1.451 at delta = 1e-06" in str(twice)


def test_releases_of_the_same_population_add_up(path):
    ledger = Ledger(path)
    ledger.record(LedgerEntry(FIRST, ONE, "patients"))
    assert ledger.record(LedgerEntry(SECOND, ONE, "patients")).n_releases == 2
    assert ledger.record(LedgerEntry(SECOND, ONE, "visitors")).n_releases == 3
    # the second sketch is of both populations
    assert ledger.spent("patients") == ledger.spent("visitors")
    assert ledger.spent("patients").n_releases == 3
    assert ledger.spent("others").budgets == ()
    assert str(ledger.spent("others")) == "nothing was released"
    strict = ledger.spent("patients", delta=1e-9).budgets[0]
    assert strict.delta == 1e-9
    assert strict.epsilon > ledger.spent("patients").budgets[0].epsilon


def test_rows_and_users_are_counted_apart(path):
    ledger = Ledger(path)
    user = Budget.of(0.5, 1e-6, "user", 10)
    ledger.record(LedgerEntry(FIRST, ONE))
    assert ledger.record(LedgerEntry(FIRST, user)).budgets == (ONE, user)


def test_people_can_read_it(path):
    Ledger(path).record(LedgerEntry(FIRST, ONE, "patients", "2026-01-02T03:04:05+00:00"))
    release = json.loads(path.read_text())["releases"][0]
    assert release == {
        "when": "2026-01-02T03:04:05+00:00",
        "population": "patients",
        "fingerprint": FIRST,
        "epsilon": 1.0,
        "delta": 1e-6,
        "rho": ONE.rho,
        "unit": "row",
        "max_rows_per_user": None,
    }
    assert Ledger(path).entries() == [LedgerEntry(FIRST, ONE, "patients", release["when"])]


def test_no_release_is_lost_when_several_write(path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: Ledger(path).record(LedgerEntry(FIRST, ONE)), range(24)))
    assert len(Ledger(path).entries()) == 24
    assert not path.with_name("ledger.json.lock").exists()


RELEASE = {"when": "2026-01-02", "population": None, "fingerprint": FIRST, "epsilon": 1.0}
RELEASE |= {"delta": 1e-6, "rho": ONE.rho, "unit": "row", "max_rows_per_user": None}


def ledger_of(**changes):
    release = {key: value for key, value in (RELEASE | changes).items() if value != "none"}
    return json.dumps({"format": "ckm privacy ledger", "version": 1, "releases": [release]})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ('{"format": "ckm priv', "Unterminated string"),
        ("[]", "does not say that it is a ckm privacy ledger"),
        ('{"format": "ckm privacy ledger", "version": 2}', "has version 2"),
        ('{"format": "ckm privacy ledger", "version": 1}', "no list of releases"),
        (ledger_of(rho="none"), "rho"),
        (ledger_of(rho=-1.0), "release 0: rho must be positive"),
        (ledger_of(fingerprint="../.."), "not hexadecimal"),
        (ledger_of(when="yesterday"), "yesterday"),
        (ledger_of(unit="flock"), "unit must be"),
        (ledger_of(more=1), "more"),
    ],
)
def test_a_damaged_ledger_is_an_error_and_stays_as_it_is(path, text, reason):
    path.write_text(text)
    with pytest.raises(LedgerError, match=reason):
        Ledger(path).record(LedgerEntry(FIRST, ONE))
    assert path.read_text() == text


def test_what_cannot_be_a_ledger(tmp_path):
    with pytest.raises(OutputError, match="it is a directory"):
        Ledger(tmp_path).record(LedgerEntry(FIRST, ONE))
    with pytest.raises(OutputError, match="needs a lock"):
        Ledger("s3://bucket/ledger.json")
    with pytest.raises(ParameterError, match="population must be a name"):
        LedgerEntry(FIRST, ONE, " ")
