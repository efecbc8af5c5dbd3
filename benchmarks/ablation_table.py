"""The tables of docs/decoder.md, from the results of `ablation.py`."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.ablation_changes import ELSEWHERE, STEPS, Change, constants
from benchmarks.harness import ROOT, console, result_path

PAGE = ROOT / "docs" / "decoder.md"
BEGIN = "<!-- made by python -m benchmarks.ablation --table -->"
END = "<!-- end of what is made -->"
# Shares of the SSE of a set, and of the median time over sets, below which a change does not
# matter: other work on the machine makes times drift by a fifth.
SSE_MATTERS = 0.001
TIME_MATTERS = 0.25
# The columns of steps: kinds of sketches, with a heading for each.
GROUPS = (
    ("From frequencies alone", ("sketch", "heavy")),
    ("With a pool or cells", ("pool", "cells", "stale")),
)

Effects = dict[tuple[str, str], dict[str, Any]]


def update_page() -> None:
    """Write the tables between the marks of the page."""
    content = json.loads(result_path("ablation", quick=False).read_text())
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n{tables(content)}\n{END}{after}", encoding="utf-8")
    console.print(f"Written to {PAGE.parent.name}/{PAGE.name}.")


def tables(content: dict[str, Any]) -> str:
    """Return all tables, as Markdown."""
    effects = {(e["change"], e["case"]): e for e in content["results"]["effects"]}
    kinds = content["settings"]["kinds"]
    parts = [_measured(content)]
    for title, wanted in GROUPS:
        cases = [case for case, kind in kinds.items() if kind in wanted]
        steps = [step for step in STEPS if set(step.kinds) & set(wanted)]
        parts.append(f"**{title}**, a step changed or left out:\n\n{_steps(steps, cases, effects)}")
    parts.append(_noises(effects))
    parts.append(f"**Constants** at half and at twice their value:\n\n{_constants(effects)}")
    parts.append(_elsewhere())
    return "\n\n".join(parts)


def _measured(content: dict[str, Any]) -> str:
    """What was measured, and where."""
    settings = content["settings"]
    here = content["environment"]
    runs = {effect["runs"] for effect in content["results"]["effects"]}
    return (
        f"{settings['decodings']} decodings of sketches with seeds "
        f"{', '.join(map(str, settings['seeds']))}, {min(runs)} to {max(runs)} for each figure, on "
        f"one thread each ({here['cpu']}, {here['date'].split()[0]})."
    )


def _steps(steps: Sequence[Change], cases: Sequence[str], effects: Effects) -> str:
    """One line per step, one column per case."""
    lines = [["", *cases, "time"]]
    for step in steps:
        own = [effects.get((step.name, case)) for case in cases]
        ratios = [1 + effect["time"] for effect in own if effect]
        if ratios:
            time = f"{np.median(ratios):.2g}"
            lines.append([step.name, *(_share(effect) for effect in own), time])
    return _markdown(lines)


def _share(effect: dict[str, Any] | None) -> str:
    """The change of the SSE in per cent; bold if it matters."""
    if effect is None:
        return ""
    text = _percent(effect["sse"])
    return f"**{text}**" if _changes_sse(effect) else text


def _percent(share: float) -> str:
    percent = 100 * share
    if not percent:
        return "0"
    return f"{percent:+.2f}" if abs(percent) < 10 else f"{percent:+.0f}"


def _changes_sse(effect: dict[str, Any]) -> bool:
    return bool(abs(effect["sse"]) > max(effect["sse_noise"], SSE_MATTERS))


def _changes_time(effects: Sequence[dict[str, Any]]) -> bool:
    times = [effect["time"] for effect in effects]
    return bool(times and abs(np.median(times)) > TIME_MATTERS)


def matters(changes: Sequence[Change], effects: Effects) -> bool:
    """Whether one of these changes alters the SSE of a set, or the time of most."""
    return any(
        any(map(_changes_sse, own)) or _changes_time(own)
        for own in (_effects_of([change], effects) for change in changes)
    )


def _constants(effects: Effects) -> str:
    """One line per constant that matters; the others by name."""
    by_name: dict[str, list[Change]] = {}
    for change in constants():
        by_name.setdefault(str(change.constant), []).append(change)
    heading = ["", "half: SSE, at most", "at least", "time"]
    lines = [[*heading, *(word.replace("half", "twice") for word in heading[1:])]]
    within_noise = []
    untouched = []
    unmeasured = []
    for name, changes in by_name.items():
        own = _effects_of(changes, effects)
        if not own:
            unmeasured.append(f"`{name}`")
        elif matters(changes, effects):
            lines.append([f"`{name}`", *_extremes(0.5, changes, effects)])
            lines[-1] += _extremes(2.0, changes, effects)
        elif not any(effect["sse"] for effect in own):
            untouched.append(f"`{name}`")
        else:
            within_noise.append(f"`{name}`")
    parts = [_markdown(lines)]
    for title, names in (
        ("Within the noise on every set", within_noise),
        ("The same SSE, to six digits, on every set", untouched),
        ("Not measured", unmeasured),
    ):
        if names:
            parts.append(f"{title}: {', '.join(names)}.")
    return "\n\n".join(parts)


def _effects_of(changes: Sequence[Change], effects: Effects) -> list[dict[str, Any]]:
    names = {change.name for change in changes}
    return [effect for (name, _), effect in effects.items() if name in names]


def _extremes(factor: float, changes: Sequence[Change], effects: Effects) -> list[str]:
    """The largest and the smallest change of the SSE, with its case, and the median time."""
    own = _effects_of([change for change in changes if change.factor == factor], effects)
    if not own:
        return ["", "", ""]
    most = max(own, key=lambda effect: effect["sse"])
    least = min(own, key=lambda effect: effect["sse"])
    time = np.median([1 + effect["time"] for effect in own])
    shown = (f"{_share(effect)} {effect['case']}" for effect in (most, least))
    return [*shown, f"{time:.2g}"]


def _noises(effects: Effects) -> str:
    """What repeats of the decoder as it is differ by."""
    noises = {case: (e["sse_noise"], e["time_noise"]) for (_, case), e in effects.items()}
    shown = ", ".join(f"{case} {100 * noise:.2g}" for case, (noise, _) in noises.items())
    time = 100 * float(np.median([noise for _, noise in noises.values()]))
    return f"Noise of the SSE in per cent: {shown}. Times of one set are good to {time:.0f} %."


def _elsewhere() -> str:
    lines = [["what depends on them", "constants"]]
    for where, names in ELSEWHERE.items():
        lines.append([where, ", ".join(f"`{name}`" for name in names)])
    return f"Constants that no SSE above depends on:\n\n{_markdown(lines)}"


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(lines[0])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (lines[0], rule, *lines[1:]))
