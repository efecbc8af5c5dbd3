"""A ledger of privacy: a file that the user names, with every release that was made from data.

Releases of the same data add up, and only who made them can know that they are of the same data.
The ledger is a JSON file that people can read. A release is written to it before it is handed out,
so that a crash in between counts a release that nobody has, never the reverse.
"""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import Any

from ckm._core.budget import ROW, USER, Budget
from ckm._messages import Argument
from ckm._util.address import Address, as_path
from ckm._util.files import check_name, check_writable, write_atomically
from ckm._util.locks import WriteLock
from ckm.errors import InputFileError, LedgerError, OutputError, ParameterError

_FORMAT = "ckm privacy ledger"
_VERSION = 1
_FINGERPRINT = re.compile(r"[0-9a-f]{8,128}")
# Seconds to wait for another process that is writing the ledger: it takes milliseconds.
_PATIENCE = 10.0
_PAUSE = 0.02


@dataclass(frozen=True)
class LedgerEntry:
    """One release.

    Parameters
    ----------
    fingerprint : str
        A hexadecimal fingerprint of the exact sketch that was released from. It stays with the
        owner of the data: the ledger is as private as the sketch.
    budget : Budget
        What the release says about the privacy of its units.
    population : str, optional
        A name, given by the user, for the people or rows that the data is about. Releases with the
        same name add up, whatever their sketches are.
    when : str
        The time, in UTC (ISO 8601); now by default.
    """

    fingerprint: str
    budget: Budget
    population: str | None = None
    when: str = ""

    def __post_init__(self) -> None:
        if not self.when:
            object.__setattr__(self, "when", datetime.now(UTC).isoformat(timespec="seconds"))
        if self.population is not None and not (
            isinstance(self.population, str) and self.population.strip()
        ):
            raise ParameterError(
                Argument("population"),
                f" must be a name, such as 'patients 2024'; got {self.population!r}.",
            )

    @property
    def keys(self) -> set[tuple[str, str]]:
        """What identifies the data: releases that share one of these add up."""
        keys = {("fingerprint", self.fingerprint)}
        if self.population is not None:
            keys.add(("population", self.population))
        return keys


@dataclass(frozen=True)
class Spent:
    """What was spent on some data in all.

    Parameters
    ----------
    n_releases : int
        The number of releases.
    budgets : tuple of Budget
        Their total, for each unit that was protected: "row", "user" or both. The two do not add up
        to one number.
    """

    n_releases: int
    budgets: tuple[Budget, ...]

    def __str__(self) -> str:
        if not self.budgets:
            return "nothing was released"
        totals = " and ".join(
            f"epsilon = {total.epsilon:.4g} at delta = {total.delta:g} "
            f"(rho = {total.rho:.4g}) for each {total.unit}"
            for total in self.budgets
        )
        releases = "1 release" if self.n_releases == 1 else f"{self.n_releases} releases"
        return f"{releases} with {totals}"


class Ledger:
    """The releases in a ledger file.

    Parameters
    ----------
    path : str or path
        The file. The first release makes it. While it is written, it is locked.

    Examples
    --------
    >>> import os, tempfile
    >>> ledger = Ledger(os.path.join(tempfile.mkdtemp(), "ledger.json"))
    >>> entry = LedgerEntry("a1b2c3d4", Budget.of(1.0, 1e-6), population="patients")
    >>> print(ledger.record(entry))
    1 release with epsilon = 1 at delta = 1e-06 (rho = 0.02436) for each row
    >>> print(ledger.record(entry))
    2 releases with epsilon = 1.451 at delta = 1e-06 (rho = 0.04871) for each row
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        check_name(path)
        place = as_path(path)
        if isinstance(place, Address):
            raise OutputError(
                f"Cannot keep a ledger at {place}: it needs a lock, which only files on this "
                "machine have; name a file."
            )
        self._path = Path(place)

    def entries(self) -> list[LedgerEntry]:
        """Every release so far, in order; none if there is no file yet."""
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        except UnicodeDecodeError:
            raise self._damaged("it is not text") from None
        except OSError as error:
            raise InputFileError(
                f"Cannot read the ledger {self._path}: {error.strerror or error}; without it, what "
                "was spent is not known."
            ) from error
        return self._parsed(text)

    def record(self, entry: LedgerEntry) -> Spent:
        """Write a release to the file; what was spent on its data in all, this release included."""
        with self._locked():
            entries = [*self.entries(), entry]
            write_atomically(self._path, _as_text(entries))
        return spent_on(entry.keys, entries)

    def spent(self, population: str, delta: float | None = None) -> Spent:
        """What was spent on a population, with epsilon at this delta (by default the largest)."""
        return spent_on({("population", population)}, self.entries(), delta)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the file, after waiting a while for others who do."""
        check_writable(self._path)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                lock = WriteLock(self._path)
                break
            except OutputError as error:
                is_busy = isinstance(error.__cause__, BlockingIOError)
                if not is_busy or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
        with lock:
            yield

    def _parsed(self, text: str) -> list[LedgerEntry]:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise self._damaged(str(error)) from None
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise self._damaged(f"it does not say that it is a {_FORMAT}")
        if document.get("version") != _VERSION:
            raise LedgerError(
                f"The ledger {self._path} has version {document.get('version')!r}; this version of "
                f"ckm reads version {_VERSION}: use a later one."
            )
        releases = document.get("releases")
        if not isinstance(releases, list):
            raise self._damaged("it has no list of releases")
        return [self._entry(number, release) for number, release in enumerate(releases)]

    def _entry(self, number: int, release: Any) -> LedgerEntry:
        try:
            fields = dict(release)
            population = fields.pop("population")
            entry = LedgerEntry(
                fields.pop("fingerprint"), population=population, when=fields.pop("when"),
                budget=Budget(**fields),
            )  # fmt: skip
            datetime.fromisoformat(entry.when)
            if not _FINGERPRINT.fullmatch(entry.fingerprint):
                raise ValueError("its fingerprint is not hexadecimal")
        except KeyError as error:
            raise self._damaged(f"release {number} has no {error}") from None
        except (TypeError, ValueError) as error:
            raise self._damaged(f"release {number}: {error}") from None
        return entry

    def _damaged(self, reason: str) -> LedgerError:
        return LedgerError(
            f"The ledger {self._path} is damaged ({reason.rstrip('.')}), so that what was spent is "
            "not known; restore it from a copy. Nothing was released."
        )


def spent_on(
    keys: set[tuple[str, str]], entries: Sequence[LedgerEntry], delta: float | None = None
) -> Spent:
    """What releases of the same data spent in all.

    Releases are of the same data if they share a fingerprint or a population, directly or through
    others: if one sketch was released under two names, both names are about its rows.
    """
    found = set(keys)
    while True:
        related = [entry for entry in entries if entry.keys & found]
        more = found.union(*(entry.keys for entry in related))
        if more == found:
            break
        found = more
    budgets = []
    for unit in (ROW, USER):
        own = [entry.budget for entry in related if entry.budget.unit == unit]
        if own:
            total = reduce(Budget.together, own)
            budgets.append(total if delta is None else total.at(delta))
    return Spent(len(related), tuple(budgets))


def _as_text(entries: Sequence[LedgerEntry]) -> bytes:
    releases = [
        {
            "when": entry.when,
            "population": entry.population,
            "fingerprint": entry.fingerprint,
            **asdict(entry.budget),
        }
        for entry in entries
    ]
    document = {"format": _FORMAT, "version": _VERSION, "releases": releases}
    return (json.dumps(document, indent=2) + "\n").encode()
