"""The experiments' own code: tasks run once, summaries are right, claims are judged as stated,
deformations are small.
"""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits

import ckm
from benchmarks import deform, mnist, spectral
from experiments import claims, experiment, figure1, figure2, figure3, figure4, tables

ROOT = Path(__file__).parents[2]
# Benchmarks that measure a part of ckm that has no public name.
OF_INTERNALS = {
    "ablation.py",  # the settings of the decoder
    "ablation_changes.py",
    "decoder.py",  # one evaluation of the decoder's objective
    "gpu_decode.py",  # the limit from which on a GPU decodes
    "kernel.py",  # the kernel alone
    "kernel_rivals.py",
    "mix.py",  # the bytes of moments
    "plain_loops.py",  # the constants of the arithmetic
    "privacy_audit.py",  # the noise of a release alone
    "quality_rivals.py",  # the bytes of a file
    "rivals.py",  # the placing of centroids, which every rival shares
    "startup.py",  # the entry point of the command line
    "statistics_cost.py",  # the kernel without its statistics
    "structured.py",  # products with structured frequencies
}


# Tasks


def trial(done: list, fail_at: int | None = None) -> experiment.Experiment:
    def work(task):
        if task["seed"] == fail_at:
            raise KeyboardInterrupt
        done.append(task["seed"])
        return [{"method": "a", "sse": float(task["seed"])}, {"method": "b", "sse": 1.0}]

    return experiment.Experiment(
        "try", "a try", lambda plan: tasks(3), work, ("sse",), lambda rows, path: None
    )


def tasks(count: int) -> list[experiment.Task]:
    return [{"N": 10, "ratios": [1, 2], "seed": seed} for seed in range(count)]


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    store = experiment.TaskLog.at(tmp_path / "runs" / "try.jsonl")
    done = []
    with pytest.raises(SystemExit, match="continues from here"):
        experiment.run_all(trial(done, fail_at=1), tasks(3), store, jobs=0)
    assert done == [0]
    assert experiment.run_all(trial(done), tasks(3), store, jobs=0) == 0
    assert done == [0, 1, 2]
    assert experiment.run_all(trial(done), tasks(3), store, jobs=0) == 0
    assert done == [0, 1, 2]


def test_a_line_cut_short_by_a_crash_is_done_again(tmp_path):
    store = experiment.TaskLog.at(tmp_path / "try.jsonl")
    done = []
    experiment.run_all(trial(done), tasks(2), store, jobs=0)
    text = store.log.path.read_text()
    store.log.path.write_text(text[: len(text) - 20])
    experiment.run_all(trial(done), tasks(3), store, jobs=0)
    assert done == [0, 1, 1, 2]
    assert len(store.read()) == 3


def test_nothing_new_begins_when_time_is_up(tmp_path):
    done: list = []
    left = experiment.run_all(
        trial(done), tasks(3), experiment.TaskLog.at(tmp_path / "try.jsonl"), jobs=0, minutes=1e-12
    )
    assert (done, left) == ([], 3)


def test_every_run_is_kept_with_its_seed_and_versions(tmp_path):
    store = experiment.TaskLog.at(tmp_path / "try.jsonl")
    experiment.run_all(trial([]), tasks(2), store, jobs=0)
    entries = [json.loads(line) for line in store.log.path.read_text().splitlines()]
    assert [entry["task"]["seed"] for entry in entries] == [0, 1]
    assert all(
        {"numpy", "compressive-kmeans", "scikit-learn"} <= set(entry["versions"])
        for entry in entries
    )


# Summaries


def test_a_summary_has_means_deviations_and_seeds(tmp_path):
    store = experiment.TaskLog.at(tmp_path / "try.jsonl")
    experiment.run_all(trial([]), tasks(3), store, jobs=0)
    rows = experiment.summarise(store.read().values(), ("sse",))
    assert experiment.one(rows, method="a") == {
        "N": 10,
        "method": "a",
        "count": 3,
        "seeds": [0, 2],
        "sse": {"mean": 1.0, "std": 1.0, "median": 1.0},
    }
    assert experiment.one(rows, method="b")["sse"]["std"] == 0
    with pytest.raises(LookupError):
        experiment.one(rows, method="c")


def test_a_summary_is_read_as_it_was_written(tmp_path):
    rows = [{"N": 10, "sse": {"mean": 1.5}}, {"N": 20, "sse": {"mean": 2.5}}]
    experiment.write_json(
        experiment.result_path("quick", "try", folder=tmp_path),
        {"experiment": "try", "left": 0, "rows": rows},
    )
    assert experiment.read_summary("quick", "try", tmp_path) == rows
    assert experiment.read_summary("full", "try", tmp_path) == []


def test_enough_is_where_the_mean_stays_below():
    means = {1: 3.0, 2: 1.5, 3: 2.5, 5: 1.9, 8: 1.2}
    rows = [
        {"method": "clompr", "ratio": ratio, "relative": {"mean": mean}}
        for ratio, mean in means.items()
    ]
    assert figure2.enough(rows, "clompr", "relative", 2.0) == 5
    assert figure2.enough(rows, "clompr", "relative", 1.3) == 8
    assert figure2.enough(rows, "clompr", "relative", 1.1) is None


# Claims


def figure3_rows(ari: dict, sse: dict) -> list[experiment.Row]:
    return [
        {
            "N": N,
            "method": method,
            "replicates": r,
            "ari": {"mean": ari[N, method], "std": 1 / N},
            "sse": {"mean": sse[method, r], "std": 0.0},
        }
        for N, method in ari
        for r in (1, 5)
    ]


@pytest.fixture
def mnist_rows() -> list[experiment.Row]:
    """CKM has better classes than Lloyd at both sizes, but for our decoder at the larger one."""
    ari = {(70_000, "lloyd"): 0.8, (70_000, "clompr"): 0.9, (70_000, "density"): 0.85}
    ari |= {(300_000, "lloyd"): 0.8, (300_000, "clompr"): 0.92, (300_000, "density"): 0.79}
    sse = {
        ("lloyd", 1): 0.14,
        ("lloyd", 5): 0.07,
        ("clompr", 1): 0.1,
        ("clompr", 5): 0.1,
        ("density", 1): 0.9,
        ("density", 5): 0.1,
    }
    return figure3_rows(ari, sse)


def test_better_classes_must_hold_at_every_size(mnist_rows):
    assert claims.better_classes(mnist_rows, "clompr").holds
    assert not claims.better_classes(mnist_rows, "density").holds
    assert claims.better_classes(mnist_rows, "density").measured.startswith("-0.010")


def test_fewer_replicates_and_improving(mnist_rows):
    assert claims.few_replicates(mnist_rows, "clompr").holds
    assert not claims.few_replicates(mnist_rows, "density").holds
    assert claims.improving(mnist_rows, "clompr").holds
    assert not claims.improving(mnist_rows, "density").holds
    with pytest.raises(LookupError):
        claims.improving(experiment.pick(mnist_rows, N=70_000), "clompr")


def test_speed_counts_five_runs_of_lloyd():
    row = {
        "N": 10_000_000,
        "method": "density",
        "ratio": 10,
        "relative_time": {"mean": 0.02},
        "relative_whole": {"mean": 0.1},
    }
    assert claims.speed([row], "density") == claims.Verdict(
        "250 times (with sketching 50 times)", True
    )
    assert not claims.speed([row | {"relative_time": {"mean": 0.04}}], "density").holds


def test_initialisation_is_the_largest_mean_over_the_smallest():
    means = {("clompr", "range"): 1.0, ("clompr", "sample"): 1.2, ("clompr", "k++"): 1.1}
    means |= {("lloyd", "range"): 3.0, ("lloyd", "sample"): 1.0, ("lloyd", "k++"): 1.0}
    rows = [
        {"data": data, "method": m, "strategy": s, "N": 10, "sse": {"mean": mean}}
        for (m, s), mean in means.items()
        for data in ("gaussian", "mnist")
    ]
    assert not claims.initialisation("gaussian")(rows, "clompr").holds
    assert claims.initialisation("mnist")(rows, "clompr") == claims.Verdict(
        "1.200 (Lloyd 3.000)", True
    )


def test_what_a_quick_run_lacks_comes_from_the_full_one_and_is_marked(mnist_rows):
    def read(level: str, name: str) -> list[experiment.Row]:
        return mnist_rows if (level, name) == ("full", "figure3") else []

    rows = {row["claim"]: row for row in claims.judge_all(read, "quick")}
    better = next(row for claim, row in rows.items() if claim.startswith("Better classes"))
    assert better["clompr"]["from"] == "full"
    assert "(from the full run)" in claims.cells(better, "quick")[2]
    assert "(from the full run)" not in claims.cells(better, "full")[2]
    fast = next(row for claim, row in rows.items() if claim.startswith("Given the sketch"))
    assert fast["density"] == {"measured": None, "holds": None, "from": None}
    assert "not measured" in claims.cells(fast, "quick")


# Deformations


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    """Grey images of 28 x 28 pixels with a margin, as MNIST's."""
    small = (load_digits().images[:60] * (255 / 16)).astype(np.uint8)
    found = np.pad(small.repeat(2, axis=1).repeat(2, axis=2), ((0, 0), (6, 6), (6, 6)))
    found.flags.writeable = False
    return found


def test_no_deformation_is_the_identity(images):
    none = deform.Deformation(0, 0, 0, 0, 0)
    np.testing.assert_array_equal(deform.deform(images, np.random.default_rng(0), none), images)


def test_deformed_images_are_near_their_own(images):
    moved = deform.deform(images, np.random.default_rng(0)).astype(float)
    assert moved.shape == images.shape
    distances = ((moved[:, None] - images[None].astype(float)) ** 2).sum(axis=(2, 3))
    own = np.diag(distances)
    others = distances[~np.eye(len(images), dtype=bool)]
    assert 0 < own.min() < own.mean() < 0.4 * others.mean()
    assert moved.sum() == pytest.approx(images.sum(), rel=0.05)


def test_a_shift_moves_everything_alike(images):
    moved = deform.deform(
        images, np.random.default_rng(0), deform.Deformation(0, 0, 0, 1, 0)
    ).astype(float)
    rows = np.arange(28)
    centres = [
        (stack.sum(axis=2) @ rows) / stack.sum(axis=(1, 2))
        for stack in (images.astype(float), moved)
    ]
    drawn = np.random.default_rng(0)
    # The shift is drawn after the angles, the shears and the scales.
    for shape in (len(images), len(images), (len(images), 2)):
        drawn.standard_normal(shape)
    np.testing.assert_allclose(
        centres[0] - centres[1], drawn.standard_normal((len(images), 2, 1, 1))[:, 0, 0, 0], atol=0.1
    )


def test_bends_are_smooth_and_as_large_as_said():
    bends = deform._bends((200, 28, 28), np.random.default_rng(0), deform.Deformation(bend=2.0))
    assert bends.std() == pytest.approx(2.0, rel=0.1)
    assert np.abs(np.diff(bends, axis=3)).mean() < 0.25 * np.abs(bends).mean()


def test_more_images_begin_with_the_same_ones(images):
    few, many = (np.concatenate([*deform.enlarged(images, count)]) for count in (130, 1500))
    assert (len(few), len(many)) == (130, 1500)
    np.testing.assert_array_equal(many[:60], images)
    np.testing.assert_array_equal(many[:130], few)
    np.testing.assert_array_equal(np.concatenate([*deform.enlarged(images, 130)]), few)
    assert not np.array_equal(many[60:120], images)


def test_spectral_features_of_deformed_images(images):
    pytest.importorskip("cv2", reason="it comes with the [experiments] extra")
    pytest.importorskip("faiss", reason="it comes with the [experiments] extra")
    many = np.concatenate([*deform.enlarged(images, 400)])
    found = spectral.embedding(spectral.neighbour_graph(spectral.descriptors(many)))
    assert found.shape == (400, 10)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)


def test_only_the_largest_part_of_a_graph_is_kept():
    links = np.zeros((6, 6))
    links[[0, 2, 2, 4, 1, 3], [2, 0, 4, 2, 3, 1]] = 1  # 0 - 2 - 4, 1 - 3, and 5 alone
    connected, kept = spectral.largest_part(sparse.csr_array(links))
    np.testing.assert_array_equal(kept, [0, 2, 4])
    np.testing.assert_array_equal(connected.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])


# Scripts


@pytest.mark.parametrize("folder", ["benchmarks", "experiments"])
def test_scripts_use_public_names_only(folder):
    sources = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / folder).glob("*.py")}
    assert len(sources) > 10
    for name in sources.keys() - OF_INTERNALS:
        assert not re.search(r"(from|import) ckm\.|from ckm import _", sources[name]), name
        used = set(re.findall(r"\bckm\.(\w+)", sources[name]))
        assert used <= {*ckm.__all__, "__version__"}, name


@pytest.mark.parametrize("folder", ["benchmarks", "experiments"])
def test_scripts_need_no_path_tricks(folder):
    for path in (ROOT / folder).glob("*.py"):
        assert "sys.path" not in path.read_text(encoding="utf-8"), path.name


def test_one_repetition_of_the_times_measures_what_it_says():
    found = figure4.work({"N": 5000, "ratios": [5], "seed": 0})
    assert [run["method"] for run in found] == ["lloyd", "clompr", "density"]
    ours = found[-1]
    assert ours["relative_memory"] == (16 * 500 + 8 * 500 * 10) / (8 * 5000 * 10)
    assert ours["relative_whole"] > ours["relative_time"] > 0
    assert 0.5 < ours["relative_sse"] < 1.2


@pytest.fixture
def forgetful_mnist():
    """Nothing that an earlier test loaded is remembered, nor what this one does."""
    for function in (mnist.originals, mnist.available):
        function.cache_clear()
    yield
    for function in (mnist.originals, mnist.available):
        function.cache_clear()


@pytest.mark.usefixtures("forgetful_mnist")
def test_without_images_mnist_is_left_out_with_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MNIST_DIR", raising=False)
    plan = experiment.Plan(full=False, seeds=range(2))
    assert figure3.tasks(plan) == []
    assert "give --mnist FOLDER" in capsys.readouterr().out
    assert {task["data"] for task in figure1.tasks(plan)} == {"gaussian"}
    mnist.available.cache_clear()
    monkeypatch.setenv("MNIST_DIR", str(tmp_path / "nowhere"))
    assert not mnist.available()
    assert "MNIST is left out" in capsys.readouterr().out


def test_without_tasks_a_summary_is_left_alone(tmp_path, capsys):
    path = experiment.result_path("quick", "try", folder=tmp_path)
    experiment.write_json(path, {"experiment": "try", "rows": [{"N": 1}]})
    without_tasks = replace(trial([]), tasks=lambda plan: [])
    experiment.reproduce(without_tasks, arguments=[], folder=tmp_path)
    assert experiment.read_summary("quick", "try", tmp_path) == [{"N": 1}]
    assert "nothing to do" in capsys.readouterr().out


# The document


def test_every_number_of_the_document_is_in_a_summary():
    text = tables.DOCUMENT.read_text(encoding="utf-8")
    assert all(f"<!-- {name} -->" in text for name in tables.TABLES)
    assert tables.filled(text) == text, "run python -m experiments.tables"


def test_a_table_says_what_was_not_run():
    text = "a\n<!-- figure1 -->\nold\n<!-- end -->\nb"
    expected = "a\n<!-- figure1 -->\nNot run yet.\n<!-- end -->\nb"
    assert tables.filled(text, read=lambda level, name: []) == expected
