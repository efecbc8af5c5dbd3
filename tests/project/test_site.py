"""The site, as far as it is known without building it: `make docs` builds it with warnings as
errors. Every public name has its place, every link and every page is reached, README is short, and
its figures are those of the committed results.
"""

import json
import re
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ckm
from tools import benchmark_pages
from tools.benchmark_pages import RESULTS
from tools.benchmark_tables import COMPARISONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXTS = {
    path: path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), ROOT / "benchmarks" / "README.md"])
}


@cache
def pages() -> dict[str, str]:
    """The pages of measurements by their names."""
    return benchmark_pages.pages()


# The API reference


def test_every_public_name_is_in_the_api_reference() -> None:
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+(?:\.\w+)?)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert "automodule:: ckm.errors" in text
    own = [value for value in vars(ckm.datasets).values() if _is_of_datasets(value)]
    expected = {f"datasets.{value.__name__}" for value in own} | set(ckm.__all__)
    assert set(listed) == expected - {"datasets", "errors"}


def _is_of_datasets(value: Any) -> bool:
    return getattr(value, "__module__", "") == "ckm.datasets" and not value.__name__.startswith("_")


# Links and pages


def anchors_of(text: str) -> set[str]:
    """The anchors of headings, as forges and MyST make them."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.*)$", without_code, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_links_to_headings_lead_to_headings(path: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", TEXTS[path]):
        other = (path.parent / target).resolve() if target else path
        if other in TEXTS:
            assert anchor in anchors_of(TEXTS[other]), f"{target}#{anchor}"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.stem)
def test_links_to_generated_pages_lead_to_pages_that_are_generated(path: Path) -> None:
    for folder, name in re.findall(r"\]\((?:docs/)?(measured|gallery)/([\w-]+)\.\w+", TEXTS[path]):
        is_example = (ROOT / "examples" / "gallery" / f"{name}.py").exists() or name == "index"
        assert is_example if folder == "gallery" else name in pages()


def test_every_page_is_reached_from_the_first() -> None:
    reached = {"index"}
    waiting = ["index"]
    while waiting:
        found = toctree_of(waiting.pop()) - reached
        reached |= found
        waiting += found
    own = {page.stem for page in [*DOCS.glob("*.md"), *DOCS.glob("*.rst")]}
    assert own <= reached


def toctree_of(page: str) -> set[str]:
    path = DOCS / f"{page}.md"
    text = TEXTS.get(path, "")
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line and line[0] != ":"]
    return {line.split("<")[-1].rstrip(">") for line in lines}


# README


def test_readme_opens_with_two_commands_and_is_short() -> None:
    assert len(README.split()) <= 600
    title, _, fence, *commands = README.splitlines()[:5]
    assert (title[:5], fence) == ("# ckm", "```")
    assert [line.split("#")[0].strip() for line in commands] == ["make demo", "make test"]


def results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]


def test_the_figures_of_readme_are_those_of_the_results() -> None:
    lines = [line for line in README.splitlines() if line.startswith("| ")]
    table = {line.split("|")[1].strip(" `"): line for line in lines}
    runs = {(run["contestant"], run["N"]): run for run in results("end_to_end")["runs"]}

    def seconds(who: str, rows: float) -> float:
        return float(runs[who, int(rows)]["seconds"])

    times = seconds("KMeans(n_init=5)", 5e6) / seconds("ckm", 5e6)
    assert f"{times:.0f} times as fast at 5·10⁶" in table["KMeans"]
    assert results("end_to_end")["break_even"] == pytest.approx(80_000, rel=0.05)
    even = [round(found["rows"], -3) for found in results("cells-even").values()]
    assert f"{min(even):.0f} to {max(even):.0f}" in table["KMeans"].replace(" 000", "000")

    pair = [seconds(who, 1e4) for who in ("MiniBatchKMeans", "ckm")]
    assert "10⁴ rows: {:.2f} s, ckm {:.2f} s".format(*pair) in table["MiniBatchKMeans"]
    mnist = results("wide-mnist")
    pair = [mnist[who]["seconds"] for who in ("MiniBatchKMeans", "ckm")]
    assert "MNIST: {:.2f} s, ckm {:.2f} s".format(*pair) in table["MiniBatchKMeans"]
    more = mnist["ckm"]["explained"] / mnist["MiniBatchKMeans"]["explained"] - 1
    assert f"{100 * more:.0f} % more explained" in table["MiniBatchKMeans"]
    times = seconds("MiniBatchKMeans", 1e6) / seconds("ckm", 1e6)
    assert f"{times:.0f} times as fast at 10⁶ rows" in table["MiniBatchKMeans"]

    pair = [seconds(who, 1e7) for who in ("faiss, its sample", "ckm")]
    assert "{:.2f} s, ckm {:.1f} s".format(*pair) in table["faiss"]
    worst = max(run["relative_sse"] for key, run in runs.items() if key[0] == "faiss, its sample")
    assert f"up to {worst:.2f} times" in table["faiss"]


def test_the_figures_of_readme_about_gpus_coresets_and_pycle() -> None:
    lines = [line for line in README.splitlines() if line.startswith("| ")]
    table = {line.split("|")[1].strip(" `"): line for line in lines}
    wide = results("gpu-wide").values()
    ours = [statistics.median(found["fit with labels, s"]) for found in wide]
    theirs = statistics.median(statistics.median(found["flash-kmeans, s"]) for found in wide)
    line = table["flash-kmeans"]
    assert f"{theirs:.2f} s, ckm {min(ours):.1f} to {max(ours):.1f} s" in line
    job = results("gpu")["whole job"]
    both = job["ours, s"], job["flash-kmeans, 25 iterations, s"]
    assert "{:.2f} s, flash-kmeans {:.2f} s".format(*both) in line

    sizes: dict[tuple[str, int], dict[str, float]] = {}
    for record in results("quality-rivals"):
        key = record["data"], record["ratio"]
        sizes.setdefault(key, {})[record["method"]] = record["median"]
    ratios = {
        who: [found[who] / found["mix"] for found in sizes.values()]
        for who in ("streamkm++", "sensitivity", "lightweight")
    }
    lead = [1 - ratio for ratio in ratios["streamkm++"] if ratio < 1]
    assert all(min(ratios[who]) > 1 for who in ("sensitivity", "lightweight"))
    assert f"StreamKM++: {len(lead)} of {len(sizes)} cases" in table["coresets"]
    assert f"by up to {100 * max(lead):.2f} %" in table["coresets"]
    medians = sorted(100 * (statistics.median(some) - 1) for some in ratios.values())
    assert f"{medians[0]:.1f} to {medians[-1]:.1f} % smaller" in table["coresets"]

    runs = results("decoder").values()
    times = statistics.median(run["pycle"]["seconds"] / run["density"]["seconds"] for run in runs)
    sse = [run["pycle"]["relative_sse"] for run in runs]
    assert f"decoding {times:.0f} times as fast" in table["pycle"]
    assert f"{min(sse):.2f} to {max(sse):.2f}" in table["pycle"]
    five = results("mixtures-pycle")["pycle"][0]
    assert five["data"] == "paper K=5 n=2"
    assert f"{five['seconds']:.2f} s, pycle {five['rival_seconds']:.2f} s" in table["pycle"]


# The pages of measurements


def test_every_committed_result_is_shown_with_script_machine_and_date() -> None:
    text = "\n".join(pages().values())
    for path in RESULTS.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["quick"]:
            continue
        (line,) = {line for line in text.splitlines() if f"[`{path.name}`]" in line}
        assert line.startswith("`python -m benchmarks.")
        assert content["environment"]["date"] in line
        assert content["environment"]["cpu"] in line


def test_targets_that_were_missed_say_so() -> None:
    missed = 0
    for path in RESULTS.glob("*.json"):
        content = json.loads(path.read_text(encoding="utf-8"))
        missed += sum(target["holds"] is False for target in content["targets"])
    assert sum(text.count("| **no** |") for text in pages().values()) == missed > 0


def test_the_best_number_is_bold_whoever_it_belongs_to() -> None:
    text = pages()["side-by-side"]
    assert text.count("\n## ") == len(COMPARISONS)
    section = text.split("## Seconds of the whole job, data in memory")[1].split("\n## ")[0]
    lines = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    names = [line[0].removeprefix("| ") for line in lines if "**" in line[-1]]
    assert names == ["faiss, its sample"]
