"""Forged files with correct checksums: each is refused, or is one that the library can have made.

``make soak FILES=100000`` sets the number of files; the number of a case makes it again.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzzing import describe, fuzzed, time_limit
from possible import assert_possible_checkpoint, assert_possible_sketch

import ckm
from ckm._core.storage import deserialise, serialise
from ckm._sketching.checkpoint import from_bytes, to_bytes
from ckm.errors import CheckpointError, CkmError, SketchFileError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

# Files of all kinds together, and the number of the first.
N_FILES = int(os.environ.get("CKM_SOAK_FILES", "4000"))
SEED = int(os.environ.get("CKM_SOAK_SEED", "0"))
# Of those that load, one in so many is decoded, which takes far longer than loading.
DECODED = 40

rng = np.random.default_rng(0)
ROWS = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 8])
WIDE = rng.normal(size=(120, 5)) + 3
WEIGHTS = np.arange(120) / 7 + 0.1


def sketched(X: Any = ROWS, **options: Any) -> ckm.Sketch:
    return ckm.sketch(X, **({"sketch_size": 20, "random_state": 0, "n_jobs": 1} | options))


SKETCHES: dict[str, Callable[[], ckm.Sketch]] = {
    "plain": sketched,
    "pool": lambda: sketched(pool=10),
    "complete pool": lambda: sketched(pool=200),
    "standardized": lambda: sketched(standardize=True),
    "cosine": lambda: sketched(metric="cosine", pool=10),
    "weighted": lambda: sketched(pool=10, sample_weight=WEIGHTS),
    "structured": lambda: sketched(distribution="structured"),
    "diagonal": lambda: sketched(WIDE, pool=20),
    "subtracted": lambda: sketched() + sketched(like=sketched()) - sketched(like=sketched()),
    "scaled": lambda: sketched(pool=10).scaled(0.3),
    "one row": lambda: sketched(ROWS[:1], scale=1.0, pool=3),
    "empty": lambda: ckm.Sketch.empty(ckm.draw_frequencies(20, 2)),
}


def use_sketch(s: ckm.Sketch, original: ckm.Sketch, number: int) -> None:
    """A sketch that loads can be added, subtracted, scaled and decoded."""
    for combine in (lambda: s + s, lambda: s - s, lambda: s.scaled(0.5), lambda: s + original):
        try:
            result = combine()
        except CkmError:
            continue
        assert_possible_sketch(result)
        assert deserialise(serialise(result)) == result
    if s.count and number % DECODED == 0:
        try:
            solution = ckm.decode(s, 2, random_state=0, n_jobs=1)
        except CkmError:
            return
        assert np.isfinite(solution.centroids).all()


@pytest.mark.parametrize("kind", SKETCHES)
def test_forged_sketches(kind: str) -> None:
    _forge_sketches(kind, N_FILES // (len(SKETCHES) + len(PASSES)))


@pytest.mark.sampled
def test_some_forged_sketches() -> None:
    for kind in SKETCHES:
        _forge_sketches(kind, 15)


def _forge_sketches(kind: str, count: int) -> None:
    original = SKETCHES[kind]()
    data = serialise(original)
    n_loaded = 0
    for number in range(SEED, SEED + count):
        forged = fuzzed(data, "ckm", number)
        if forged == data:
            continue
        where = f"{kind} {number}: {describe(data, forged, 'ckm')}"
        try:
            with time_limit(where):
                try:
                    loaded = deserialise(forged)
                except SketchFileError:
                    continue
                n_loaded += 1
                assert serialise(loaded) == forged
                assert_possible_sketch(loaded)
                use_sketch(loaded, original, number)
        except Exception as error:
            error.add_note(where)
            raise
    print(f"{kind}: {count} files from seed {SEED}, {n_loaded} of them loaded")


# Checkpoints of passes over files that are there, so that those that load are resumed.

FILE_ROWS = 40_000


def write_rows(folder: Path) -> None:
    X = np.random.default_rng(1).normal(size=(FILE_ROWS, 3)).round(2)
    X[:, 2] = np.abs(X[:, 2])
    for i, part in enumerate(np.split(X, 2)):
        np.save(folder / f"{i}.npy", part)
        lines = "\n".join(",".join(map(str, row)) for row in part)
        (folder / f"{i}.csv").write_text(f"a,b,w\n{lines}\n")


COMMON: dict[str, Any] = {"sketch_size": 6, "random_state": 3, "n_jobs": 1}
PASSES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "npy": (["0.npy", "1.npy"], {"scale": 1.0}),
    "csv": (["0.csv", "1.csv"], {"nan": "drop"}),
    "pool": (["0.npy", "1.npy"], {"pool": 5, "standardize": True}),
    "weights": (["0.csv"], {"weight_column": "w", "columns": ["b", "a"]}),
    "like": (["1.npy"], {"like": ckm.draw_frequencies(6, 3, seed=1)}),
}


def checkpoint_of(names: list[str], options: dict[str, Any]) -> bytes:
    """The bytes of the first checkpoint of a pass: in the middle, if there are two files."""
    written: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "ckm._sketching.checkpoint.write_atomically", lambda _, data: written.append(data)
        )
        ckm.sketch(names, **(COMMON | options), checkpoint="s.part", checkpoint_interval=0.0)
    assert len(written) == len(names)
    return written[0]


@pytest.mark.parametrize("kind", PASSES)
def test_forged_checkpoints(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _forge_checkpoints(kind, N_FILES // (len(SKETCHES) + len(PASSES)))


@pytest.mark.sampled
def test_some_forged_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in PASSES:
        _forge_checkpoints(kind, 20)


def _forge_checkpoints(kind: str, count: int) -> None:
    write_rows(Path())
    names, options = PASSES[kind]
    data = checkpoint_of(names, options)
    n_loaded = 0
    n_resumed = 0
    for number in range(SEED, SEED + count):
        forged = fuzzed(data, "ckm-checkpoint", number)
        if forged == data:
            continue
        where = f"{kind} {number}: {describe(data, forged, 'ckm-checkpoint')}"
        try:
            with time_limit(where):
                try:
                    loaded = from_bytes(forged)
                except CheckpointError:
                    continue
                n_loaded += 1
                assert to_bytes(loaded) == forged
                assert_possible_checkpoint(loaded)
                n_resumed += _resume(names, options, forged)
        except Exception as error:
            error.add_note(where)
            raise
    print(f"{kind}: {count} files from seed {SEED}, {n_loaded} loaded, {n_resumed} resumed")


def _resume(names: list[str], options: dict[str, Any], forged: bytes) -> bool:
    """Continue from a checkpoint that loads: it is refused in words, or gives a possible sketch."""
    path = Path("s.part")
    path.write_bytes(forged)
    try:
        result = ckm.sketch(names, **(COMMON | options), checkpoint=path, resume=True)
    except CkmError:
        return False
    finally:
        path.unlink()
    assert_possible_sketch(result)
    assert deserialise(serialise(result)) == result
    return True
