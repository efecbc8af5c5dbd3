"""The ablation covers every step and constant, and the page shows what was measured."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest

import ckm
from benchmarks.ablation import CASES, REPEATS, Run, Task, all_tasks, changes, effects, make_sketch
from benchmarks.ablation_changes import ELSEWHERE, KINDS, KINDS_OF, STEPS, Change, constants
from benchmarks.ablation_table import BEGIN, END, PAGE, matters, tables
from benchmarks.harness import result_path
from ckm._decoding.api import Run as Decoding
from ckm._decoding.density import by_density
from ckm._decoding.sample import SampledRows
from ckm._decoding.settings import DEFAULT, Settings

NAMES = {constant.name for constant in fields(Settings)}


def test_every_constant_is_measured_here_or_elsewhere() -> None:
    elsewhere = [name for names in ELSEWHERE.values() for name in names]
    measured = {change.constant for change in constants()}
    assert len(elsewhere) == len(set(elsewhere))
    assert measured | set(elsewhere) == NAMES
    assert not measured & set(elsewhere)
    assert set(KINDS_OF) <= measured


def test_a_constant_is_halved_and_doubled_and_nothing_else_changes() -> None:
    for change in constants():
        name = str(change.constant)
        assert replace(change.settings, **{name: getattr(DEFAULT, name)}) == DEFAULT
        ratio = getattr(change.settings, name) / getattr(DEFAULT, name)
        assert ratio == pytest.approx(change.factor, rel=0.4)


@pytest.mark.parametrize("step", [pytest.param(step, id=step.name) for step in STEPS])
def test_a_step_is_left_out_only_while_its_change_is_applied(step: Change) -> None:
    before = [getattr(where, name) for where, name, _ in step.replacements]
    with step.applied() as settings:
        inside = [getattr(where, name) for where, name, _ in step.replacements]
        assert all(a is not b for a, b in zip(before, inside, strict=True))
        assert step.replacements or settings != DEFAULT
    assert before == [getattr(where, name) for where, name, _ in step.replacements]


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(step, id=step.name) for step in STEPS])
def test_a_decoder_without_a_step_still_decodes(step: Change) -> None:
    X = ckm.datasets.gaussian_mixture(3000, 4, 3, random_state=50).rows
    for kind in step.kinds:
        sketch = make_sketch(X, 4, kind, 50)
        decoding = Decoding("density", by_density, 4, "auto", SampledRows.of(sketch), 50)
        with step.applied() as settings:
            found = decoding.decode(sketch, settings=settings)
        assert np.isfinite(found.centroids).all()


def test_tasks_that_come_first_hold_every_change() -> None:
    tasks = all_tasks(CASES, [50, 51])
    first = {task.change for task in tasks if task.repeat == 0}
    assert first == set(range(len(changes())))
    repeats = {task.repeat for task in tasks if task.change == 0}
    assert repeats == set(range(REPEATS))
    assert len(set(tasks)) == len(tasks)
    kinds = {case.name: case.kind for case in CASES}
    assert all(kinds[task.case] in changes()[task.change].kinds for task in tasks)
    assert set(kinds.values()) == set(KINDS)
    assert Task(0, CASES[0].name, 50) == tasks[0]


def test_an_effect_is_the_median_against_the_same_seed_and_noise_is_between_repeats() -> None:
    usual = [
        Run("none", "a", seed, repeat, 100.0 * seed + repeat, 1.0)
        for seed in (1, 2, 3)
        for repeat in range(REPEATS)
    ]
    changed = [Run("step", "a", seed, 0, 110.0 * seed, 0.5) for seed in (1, 2, 3)]
    (effect,) = effects([*usual, *changed])
    assert effect.sse == pytest.approx(0.1)
    assert effect.time == -0.5
    assert effect.sse_noise == pytest.approx((REPEATS - 1) / 200)
    assert effect.time_noise == 0


def test_a_constant_within_the_noise_does_not_matter() -> None:
    change = constants()[0]
    effect = {"sse": 0.01, "sse_noise": 0.02, "time": 0.1, "time_noise": 0.2}
    key = (change.name, "a")
    assert not matters([change], {key: effect})
    assert matters([change], {key: effect | {"sse": -0.03}})
    assert matters([change], {key: effect | {"time": 0.3}})
    assert not matters([change], {key: effect | {"time": 0.3}, (change.name, "b"): effect})
    assert not matters([change], {key: effect | {"sse": 0.0009, "sse_noise": 0.0}})


def test_the_page_has_the_tables_of_the_last_results() -> None:
    content = json.loads(result_path("ablation", quick=False).read_text())
    page = PAGE.read_text(encoding="utf-8")
    made = page.split(BEGIN)[1].split(END)[0].strip()
    assert made == tables(content)
