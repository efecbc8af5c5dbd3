"""The tests on every Python from 3.11 on that this machine has, with the newest and the oldest
dependencies; and whether every extra can be installed.

    nox                             everything
    nox -s newest-3.13              the fast tests on one Python
    nox -s oldest -- tests/core     some of them, with the oldest dependencies
    nox -s extras                   whether every extra resolves

Pythons that are not here are left out; of pyenv's, name those to try, as in
PYENV_VERSION=3.11.7:3.13.0. `make test`, `make test-oldest` and `make dist` do without nox; this is
the matrix of them.
"""

import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
# Releases as old as the lower bounds have no wheels for later Pythons (numpy 1.26, numba 0.60).
OLDEST_PYTHONS = ("3.11", "3.12")
PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = sorted(PROJECT["project"]["optional-dependencies"])

FAST = (
    "-n",
    "auto",
    "--dist",
    "loadgroup",
    "-m",
    "not slow",
    "--ignore=tests/engines",
    "--ignore=tests/browser",
)


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """The fast tests with the newest version of every dependency."""
    session.install("--upgrade", "--editable", ".[dev]")
    session.run("pytest", *FAST, *session.posargs)


@nox.session(python=OLDEST_PYTHONS)
def oldest(session: nox.Session) -> None:
    """The fast tests with the lower bounds of pyproject.toml."""
    session.install("packaging")
    bounds = session.run("python", "tools/oldest.py", silent=True)
    constraints = Path(session.create_tmp()) / "constraints.txt"
    constraints.write_text(str(bounds), encoding="utf-8")
    session.install("--constraint", str(constraints), "--editable", ".[dev]")
    # Old packages may use what newer packages below them call deprecated.
    session.run("pytest", "-W", "ignore::DeprecationWarning", *FAST, *session.posargs)


@nox.session(python=False)
@nox.parametrize("extra", EXTRAS)
def extras(session: nox.Session, extra: str) -> None:
    """Every extra resolves; nothing is installed."""
    install = ("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    session.run(*install, "--dry-run", "--ignore-installed", f".[{extra}]", external=True)
