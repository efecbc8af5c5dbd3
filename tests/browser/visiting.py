"""A visit to a page: what it asks for, what it complains of, what axe-core finds."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Addresses that do not stay within the page and its folder. A pattern, which the browser's side
# matches: a function would be asked, from another process, about every file of every page.
ELSEWHERE = re.compile(r"^(?!file:|data:|blob:|about:)")
SERIOUS = ("serious", "critical")
# How scikit-learn shows an estimator is its own affair.
NOT_OURS = {"exclude": [[".sk-top-container"]]}
# Style sheets are not fetched again, which a page from a file may not do.
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}


@dataclass
class Visit:
    """An open page, with what happened on it so far."""

    page: Any
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, path: Path, query: str = "") -> None:
        """Open a file, and wait until its scripts have run."""
        self.page.goto(path.resolve().as_uri() + query, wait_until="load")

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        found = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return int(found)

    def findings(self) -> list[str]:
        """Serious findings of axe-core, with the elements that they are about."""
        from axe_playwright_python.sync_playwright import Axe

        violations = Axe().run(self.page, NOT_OURS, AXE_OPTIONS).response["violations"]
        return [
            f"{found['id']} ({found['impact']}): {[node['html'][:160] for node in found['nodes']]}"
            for found in violations
            if found["impact"] in SERIOUS
        ]


@contextmanager
def visit(browser: Any, scheme: str = "light", width: int = 1400) -> Iterator[Visit]:
    """A page with a colour scheme and a width, on which every request to elsewhere is stopped."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    opened = Visit(context.new_page())

    def stop(route: Any) -> None:
        opened.requests.append(route.request.url)
        route.abort()

    def hear(message: Any) -> None:
        if message.type == "error":
            opened.complaints.append(f"{opened.page.url}: {message.text}")

    context.route(ELSEWHERE, stop)
    opened.page.on("console", hear)
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    try:
        yield opened
    finally:
        context.close()
