"""One browser for all tests, and the pages that they open."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import find_chromium
from made_pages import write_pages

SITE = Path(os.environ.get("CKM_SITE", Path(__file__).parents[2] / "build" / "docs"))


@pytest.fixture(scope="session")
def site() -> Path:
    """The folder of the site; `make docs-quick` builds it."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"There is no site in {SITE}; build it with: make docs-quick")
    return SITE


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report and a page of results, by name."""
    return write_pages(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        # Root has no sandbox, and containers have little shared memory.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        started = playwright.chromium.launch(
            executable_path=find_chromium().path, args=arguments, headless=True
        )
        yield started
        started.close()
