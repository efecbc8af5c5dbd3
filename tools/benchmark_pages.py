"""Write the pages of measurements in `docs/measured` from the committed JSON of benchmarks and
experiments: no number there is typed by hand. `make docs` calls it:

    python -m tools.benchmark_pages

One page compares, question by question; the best numbers are bold, whoever they belong to.
Then there is a page for each benchmark, with its targets, missed ones included, and one for the
runs that reproduce the paper. Each figure has its script, machine and date.
"""

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tools.benchmark_tables import COMPARISONS, Comparison

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
EXPERIMENTS = ROOT / "experiments" / "results" / "full"
PAGES = ROOT / "docs" / "measured"
MAX_ROWS = 40  # of a table; longer lists of runs are in the JSON


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def cell(value: Any) -> str:
    """Return a value as text of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer() and value > 999):
        return f"{value:,.0f}"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|")


def provenance(name: str, content: dict[str, Any]) -> str:
    """Return one line: the command, the machine and the date of a result."""
    where = content["environment"]
    device = [content.get("settings", {}).get(key) for key in ("card", "GPU")]
    gpu = next((f", {found}" for found in device if found), "")
    cores = f"{where['cores']} core{'s' if where['cores'] != 1 else ''}"
    return (
        f"`python -m {command(name)}` · {where['cpu']}, {cores}{gpu}, Python {where['python']} · "
        f"{where['date']} · [`{name}.json`](../../benchmarks/results/{name}.json)\n"
    )


def command(name: str) -> str:
    """Return the script that writes a result: the longest beginning of its name that is one."""
    words = name.replace("-", "_").split("_")
    for count in range(len(words), 0, -1):
        module = "_".join(words[:count])
        path = ROOT / "benchmarks" / f"{module}.py"
        if path.exists() and "__main__" in path.read_text(encoding="utf-8"):
            return f"benchmarks.{module}"
    raise ValueError(f"no script of benchmarks/ writes {name}.json")


def medians(comparison: Comparison, results: Any) -> dict[str, dict[str, float]]:
    """Return the number of each contestant by row: the median over seeds, the mean of per cents."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row, contestant, number in comparison.numbers(results):
        found[row][contestant].append(number)
    middle = statistics.mean if "per cent" in comparison.question else statistics.median
    return {row: {who: middle(some) for who, some in all_.items()} for row, all_ in found.items()}


def winners(numbers: dict[str, float], more_is_better: bool) -> set[str]:
    """Return who has the best number of a row, to the digits that are shown."""
    best = max(numbers.values()) if more_is_better else min(numbers.values())
    return {who for who, number in numbers.items() if f"{number:.4g}" == f"{best:.4g}"}


def compared(comparison: Comparison, content: dict[str, Any]) -> str:
    """Return the section of one question."""
    found = medians(comparison, content["results"])
    contestants = list(dict.fromkeys(who for numbers in found.values() for who in numbers))
    best = {row: winners(numbers, comparison.more_is_better) for row, numbers in found.items()}
    wins = Counter(who for some in best.values() for who in some)
    count = "; ".join(f"{who}: {number}" for who, number in wins.most_common())
    shown = {
        (row, who): f"**{cell(number)}**" if who in best[row] else cell(number)
        for row, numbers in found.items()
        for who, number in numbers.items()
    }
    # The longer side goes down the page, so that every column is seen.
    if len(found) < len(contestants):
        lines = [[who, *(shown.get((row, who), "") for row in found)] for who in contestants]
        grid = table([comparison.row, *map(cell, found)], lines)
    else:
        lines = [[cell(row), *(shown.get((row, who), "") for who in contestants)] for row in found]
        grid = table([comparison.row, *contestants], lines)
    parts = [
        f"## {comparison.question}\n",
        provenance(comparison.file, content),
        *([f"{comparison.note}\n"] if comparison.note else []),
        f"The best number, of {len(found)} (ties count for all). {count}.\n",
        grid,
    ]
    return "\n".join(parts)


def comparison_page(contents: dict[str, dict[str, Any]]) -> str:
    """Return the page of all questions."""
    opening = (
        "# Side by side\n\n"
        "Everyone who was measured, ours and others alike, from the results that are committed in "
        "`benchmarks/results`. The best numbers are bold. Numbers of one table come from "
        "one run on one machine; numbers of different tables may not. Names of methods are "
        "explained by the pages of the [benchmarks](index.md) and by [quality](../quality.md).\n"
    )
    sections = [compared(each, contents[each.file]) for each in COMPARISONS]
    return "\n".join([opening, *sections])


def targets(content: dict[str, Any]) -> str:
    """Return the table of what a benchmark asked for, and whether it was reached."""
    rows = []
    for target in content["targets"]:
        bound = f"{'at most' if target['at_most'] else 'at least'} {target['target']:g}"
        measured = None if target["measured"] is None else float(f"{target['measured']:.5g}")
        verdict = {True: "yes", False: "**no**", None: "not measured"}[target["holds"]]
        rows.append(
            [cell(target["what"]), bound, "" if measured is None else f"{measured:g}", verdict]
        )
    return table(["target", "asked for", "measured", "reached"], rows) if rows else ""


def plain_tables(results: Any, name: str = "") -> list[str]:
    """Return what is short and flat of the results, as tables."""
    opening = [f"{name[:1].upper()}{name[1:]}:\n"] if name else []
    if isinstance(results, list):
        is_table = 0 < len(results) <= MAX_ROWS and isinstance(results[0], dict)
        return [*opening, record_table(results)] if is_table else []
    if not isinstance(results, dict) or len(results) > MAX_ROWS:
        return []
    # Measurements of the same things under several names are one table.
    if results and all(isinstance(value, dict) and simple(value) for value in results.values()):
        return [*opening, record_table([{"": key, **value} for key, value in results.items()])]
    own = simple(results)
    rows = [[cell(key), cell(value)] for key, value in own.items()]
    parts = [*opening, table(["what", "measured"], rows)] if rows else []
    for key, value in results.items():
        parts += plain_tables(value, f"{name}, {key}" if name else key)
    return parts


def simple(record: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record that are numbers or text."""
    return {key: value for key, value in record.items() if not isinstance(value, dict | list)}


def record_table(records: Sequence[dict[str, Any]]) -> str:
    """Return the numbers and texts of records as a table."""
    keys = list(dict.fromkeys(key for record in records for key in simple(record)))
    rows = [[cell(record.get(key)) for key in keys] for record in records]
    return table([cell(key) for key in keys], rows)


def benchmark_page(module: str, text: str, contents: dict[str, dict[str, Any]]) -> str:
    """Return the page of one script with all of its results."""
    parts = [f"# {module.removeprefix('benchmarks.')}\n", f"{text[:1].upper()}{text[1:]}.\n"]
    for name, content in contents.items():
        settings = simple(content["settings"])
        parts += [f"## {name}\n", provenance(name, content)]
        if settings:
            parts.append(
                "Settings: " + ", ".join(f"{k} = {cell(v)}" for k, v in settings.items()) + ".\n"
            )
        if (RESULTS / f"{name}.png").exists():
            parts.append(f"![The results of {name}, drawn](../../benchmarks/results/{name}.png)\n")
        parts += [targets(content), *plain_tables(content["results"])]
    return "\n".join(parts)


def described() -> dict[str, str]:
    """Return what each script measures, by its module: from benchmarks/README.md."""
    text = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for module, what in re.findall(r"python -m (benchmarks\.\w+)[^#\n]*# (.*)", text):
        found.setdefault(module, what)
    return found


def experiments_page() -> str:
    """Return the page of the runs that reproduce the paper."""
    parts = [
        "# Runs of the reproduction\n",
        "Where and when each figure of [the reproduction](../reproduction.md) was measured: means "
        "over *count* runs.\n",
    ]
    for path in sorted(EXPERIMENTS.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        where = content["environment"]
        done = (
            f", {content['tasks'] - content['left']} of {content['tasks']} runs"
            if "tasks" in content
            else ""
        )
        parts += [
            f"## {path.stem}\n",
            f"`python -m experiments.{path.stem} --full` · {where['cpu']}, {where['cores']} cores, "
            f"Python {where['python']} · {where['date']}{done} · "
            f"[`{path.name}`](../../experiments/results/full/{path.name})\n",
            *experiment_table(content["rows"]),
        ]
    return "\n".join(parts)


def experiment_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the means of the runs of an experiment; the claims are on the page itself."""
    if "claim" in rows[0]:
        return []
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key != "seeds"]
    shown = [[cell(_mean(row.get(key))) for key in keys] for row in rows]
    return [table(keys, shown)]


def _mean(value: Any) -> Any:
    return value.get("mean") if isinstance(value, dict) else value


def index_page(modules: Sequence[str], texts: dict[str, str]) -> str:
    """Return the list of benchmarks."""
    lines = [
        f"- [{name.split('.')[1]}]({name.split('.')[1]}.md): {texts[name]}" for name in modules
    ]
    pages = "\n".join(name.split(".")[1] for name in modules)
    return (
        "# Every benchmark\n\nOne page for each script, with its targets, machine and date.\n\n"
        + "\n".join(lines)
        + f"\n\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
    )


def pages() -> dict[str, str]:
    """Return all pages by their names."""
    files = sorted(RESULTS.glob("*.json"))
    contents = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}
    contents = {name: content for name, content in contents.items() if not content["quick"]}
    by_module: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, content in contents.items():
        by_module[command(name)][name] = content
    texts = {module: described().get(module, "") for module in by_module}
    found = {
        "side-by-side": comparison_page(contents),
        "reproduction-runs": experiments_page(),
        "index": index_page(list(by_module), texts),
    }
    for module, own in by_module.items():
        found[module.split(".")[1]] = benchmark_page(module, texts[module], own)
    return found


def main() -> None:
    """Write the pages that changed, so that Sphinx reads no other again."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        path = PAGES / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
