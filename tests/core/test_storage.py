"""Files: a saved sketch loads unchanged, has only one form in bytes, and no other bytes load."""

import errno
import json
import os
import pickle
import stat
import struct
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from by_kernel import sketch_by
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from sketch_files import LEFT_OUT, canonical, forge, header_of, metadata_of, mutations, with_header

import ckm
from ckm._core.container import ContainerKind, read_container
from ckm._core.drawing import draw_frequencies
from ckm._core.sketch import Sketch
from ckm._core.storage import SKETCH, deserialise, serialise
from ckm._sketching.checkpoint import CHECKPOINT
from ckm.errors import MissingFileError, OutputError, SketchFileError

GOLDEN = Path(__file__).parent / "golden" / "v1.ckm"


def small(**options: Any) -> Sketch:
    X = np.random.default_rng(0).normal(size=(20, 2))
    return ckm.sketch(
        X, **({"sketch_size": 6, "pool": 3, "random_state": 0, "n_jobs": 1} | options)
    )


DATA = serialise(small())


def assert_identical(a: Sketch, b: Sketch) -> None:
    """Equal in everything, moments and pool included."""
    assert a == b
    assert a.frequencies == b.frequencies
    assert (a.frequencies.scale, a.frequencies.distribution, a.frequencies.seed) == (
        b.frequencies.scale,
        b.frequencies.distribution,
        b.frequencies.seed,
    )
    assert (a.columns, a.exact, a.tally.tight) == (b.columns, b.exact, b.tally.tight)
    for name in ("sums", "lower", "upper", "first", "second"):
        assert getattr(a.tally, name).tobytes() == getattr(b.tally, name).tobytes()
        assert getattr(a.tally, name).dtype == getattr(b.tally, name).dtype
    assert (a.pool is None) == (b.pool is None)
    if a.pool is not None and b.pool is not None:
        assert (a.pool.capacity, a.pool.seen) == (b.pool.capacity, b.pool.seen)
        for name in ("rows", "weights", "keys"):
            assert getattr(a.pool, name).tobytes() == getattr(b.pool, name).tobytes()


def refused(data: bytes, match: str | None = None) -> str:
    """The message with which `data` is refused."""
    with pytest.raises(SketchFileError, match=match) as caught:
        deserialise(data, "file.ckm")
    assert str(caught.value).startswith("file.ckm ")
    return str(caught.value)


# Round trips


@settings(max_examples=60)
@given(
    m=st.integers(1, 8),
    n=st.integers(1, 4),
    count=st.integers(0, 30),
    pool=st.integers(0, 5),
    weighted=st.booleans(),
    names=st.none() | st.lists(st.text(min_size=1), min_size=4, max_size=4, unique=True),
    law=st.sampled_from(["adapted-radius", "gaussian"]),
    seed=st.integers(0, 2**64 - 1),
)
def test_a_saved_sketch_loads_unchanged(
    m: int,
    n: int,
    count: int,
    pool: int,
    weighted: bool,
    names: list[str] | None,
    law: str,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    f = draw_frequencies(
        m,
        n,
        distribution=law,
        seed=seed,
        scale=float(rng.gamma(1)) + 1e-3,
        origin=rng.normal(size=n),
    )
    like = Sketch.empty(f, None if names is None else names[:n])
    weights = rng.uniform(0, 2, size=count) if weighted else None
    s = ckm.sketch(
        rng.normal(size=(count, n)), like=like, pool=pool, sample_weight=weights, random_state=seed
    )
    data = serialise(s)
    again = deserialise(data)
    assert_identical(s, again)
    assert serialise(again) == data == serialise(s)


@pytest.mark.parametrize(
    "make",
    [
        lambda: small(),
        lambda: small(pool=0),
        lambda: small() + small() - small(),
        lambda: sketch_by("numpy", np.eye(2), draw_frequencies(6, 2)),
        lambda: small(sample_weight=np.arange(20) / 7),
        lambda: Sketch.empty(draw_frequencies(6, 2), ["größe", '重さ \ud800 \0 " \\']),
    ],
    ids=["pool", "no pool", "subtracted", "inexact", "weighted", "empty, odd names"],
)
def test_files(tmp_path: Path, make: Any) -> None:
    s = make()
    s.save(tmp_path / "s.ckm")
    assert_identical(ckm.load(tmp_path / "s.ckm"), s)
    assert_identical(ckm.load(str(tmp_path / "s.ckm")), s)
    assert (tmp_path / "s.ckm").read_bytes() == serialise(s)
    assert os.listdir(tmp_path) == ["s.ckm"]


def test_a_loaded_sketch_can_be_added_to(tmp_path: Path) -> None:
    monday = small()
    monday.save(tmp_path / "s.ckm")
    X = np.random.default_rng(1).normal(size=(9, 2))
    assert (
        ckm.sketch(X, like=tmp_path / "s.ckm") + ckm.load(tmp_path / "s.ckm")
        == ckm.sketch(X, like=monday) + monday
    )


def test_the_number_of_threads_does_not_change_the_bytes() -> None:
    X = np.random.default_rng(0).normal(size=(1, 2))
    s = ckm.sketch(X, like=small(), n_jobs=1)
    assert serialise(s) == serialise(ckm.sketch(X, like=small(), n_jobs=4))


def test_numpy_seeds_can_be_saved() -> None:
    assert serialise(Sketch.empty(draw_frequencies(3, 2, seed=np.int64(7)))) == serialise(
        Sketch.empty(draw_frequencies(3, 2, seed=7))
    )


def test_rows_are_written_only_with_a_pool() -> None:
    assert any(name.startswith("pool") for name in header_of(DATA)[0])
    assert not any(
        name.startswith("pool") for name in header_of(serialise(small().without_pool()))[0]
    )


# Golden files


def test_golden_file_of_version_1() -> None:
    """Written by the first version and never again. It must load and give the same bytes."""
    data = GOLDEN.read_bytes()
    s = ckm.load(GOLDEN)
    assert serialise(s, version=1) == data
    assert metadata_of(data)["version"] == 1
    assert deserialise(serialise(s)) == s, "saved again, it has the current version"
    assert (s.count, s.weight, s.exact, s.frequencies.m, s.frequencies.n) == (
        300,
        300.0,
        True,
        8,
        2,
    )
    assert s.columns == ("größe", "重さ")
    assert (
        s.frequencies.fingerprint
        == "8e580e958b7384bd3b4c6c930deb4f3b1554c373da6ce88209d8b03bd68b1a90"
    )
    assert s.tally.sums[:, 0].tolist() == [-321930431, -605070437]
    assert (s.pool.capacity, s.pool.seen, len(s.pool)) == (10, 300, 10)
    assert s.lower.tolist() == [-7.967193603515625, -7.9914703369140625]
    assert np.all(s.pool.rows >= s.lower)
    assert np.all(s.pool.rows <= s.upper)


def test_golden_file_of_version_2() -> None:
    """With `spread`, units of columns, and a pool that was sampled by importance."""
    path = GOLDEN.with_name("v2.ckm")
    s = ckm.load(path)
    assert serialise(s) == path.read_bytes()
    assert metadata_of(path.read_bytes())["version"] == 2
    assert (s.frequencies.spread, s.frequencies.units.tolist()) == (12.5, [1.0, 2.5])
    assert s.tally.sums[:, 0].tolist() == [-321930431, -605070437], (
        "units do not change the sums of version 1"
    )
    assert s.pool.odds[0] == pytest.approx(1.361428478450328)


def test_golden_file_of_structured_frequencies() -> None:
    path = GOLDEN.with_name("v2-structured.ckm")
    s = ckm.load(path)
    assert serialise(s) == path.read_bytes()
    assert (
        s.frequencies.fingerprint
        == "36eac69394756ab0c53a0acebafe3a5b73b12aca6cfbab73a038cbbffb230b21"
    )
    assert (s.frequencies.m, s.frequencies.n, s.frequencies.turns.shape) == (12, 5, (12,))
    assert s.tally.sums[:, 0].tolist() == [1175510751, 3436946]


def plain_rows(n: int) -> np.ndarray:
    """Whole numbers in three groups, without a random generator."""
    i = np.arange(300)[:, None]
    j = np.arange(n)[None]
    numbers = (i * i * 7 + i * (j * j + 3) * 5 + j * 11) % 64 - 32 + 100 * (i % 3)
    return numbers.astype(np.float32)


@pytest.mark.parametrize(
    ("version", "n", "fingerprint"),
    [
        (3, 2, "37992a1c6125b371bead0aefa0fb678ad4f0707035a504d5c9e600db8abd0cf1"),
        (4, 12, "b41e495a33856ac365af94c939d25a0b2546981ecc6094dbb82c3627959d6e13"),
    ],
)
def test_golden_files_of_cells_and_of_projected_unit_rows(
    version: int, n: int, fingerprint: str
) -> None:
    """Version 3 added cells; version 4 projections, sums in all columns, and the metric."""
    path = GOLDEN.with_name(f"v{version}.ckm")
    s = ckm.load(path)
    assert serialise(s) == path.read_bytes()
    assert metadata_of(path.read_bytes())["version"] == version
    assert s.design.fingerprint == fingerprint
    assert ckm.sketch(plain_rows(n), like=s) == s, "the same rows have the same bits everywhere"


def test_golden_files_of_public_bounds_and_of_a_private_release() -> None:
    """Version 5 added public bounds, whole-number sums within them, and noised sums."""
    path = GOLDEN.with_name("v5.ckm")
    s = ckm.load(path)
    assert serialise(s) == path.read_bytes()
    assert metadata_of(path.read_bytes())["version"] == 5
    assert (
        s.design.fingerprint == "8a2c3333d5aa2280d8a218abcd08c6b898096ae5f068e2d4f18426f7974b5dc0"
    )
    assert ckm.sketch(plain_rows(2), like=s) == s, "the same rows have the same bits everywhere"
    assert s.tally.bounded.first.tolist() == [-1394383, 887626]
    assert s.tally.bounded.clipped == 64
    path = GOLDEN.with_name("v5-release.ckm")
    r = ckm.load(path)
    assert serialise(r) == path.read_bytes()
    assert r.frequencies == s.frequencies
    assert r.release.sums[:, 0].tolist() == [-327181708, 25842700]
    assert (r.release.count, r.release.variance) == (677020008, 3181090024436251)
    assert (r.release.budget.epsilon, r.release.budget.delta) == (1.0, 1e-6)


# Other bytes are refused


def test_every_flipped_byte_is_refused() -> None:
    for i in range(len(DATA)):
        for flip in (0x01, 0x20, 0x80, 0xFF):
            altered = bytearray(DATA)
            altered[i] ^= flip
            refused(bytes(altered))


def test_ten_thousand_mutations_are_refused() -> None:
    for altered in mutations(DATA, 10_000):
        refused(altered)


@settings(max_examples=300)
@given(data=st.data())
def test_every_replaced_byte_is_refused(data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(DATA) - 1))
    value = data.draw(st.integers(0, 255))
    altered = bytearray(DATA)
    altered[i] = value
    if bytes(altered) != DATA:
        refused(bytes(altered))


def test_every_truncation_is_refused() -> None:
    for length in range(len(DATA)):
        refused(DATA[:length])


@pytest.mark.parametrize("more", [b"\0", b" ", b"\n", DATA])
def test_appended_bytes_are_refused(more: bytes) -> None:
    refused(DATA + more)
    refused(more + DATA)


@settings(max_examples=200)
@given(st.binary(max_size=200) | st.binary(max_size=60).map(lambda tail: DATA[:60] + tail))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    refused(data)


def test_other_files_are_refused_with_the_reason() -> None:
    assert "is empty" in refused(b"")
    assert "is not a sketch" in refused(b"a,b\n1,2\n3,4\n")
    assert "is not a sketch" in refused(pickle.dumps({"a": 1}, protocol=4))
    assert "is not a sketch" in refused(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8'}")
    assert "safetensors file, but not a sketch" in refused(
        save_tensors({"sums": np.zeros((2, 6), np.int64)})
    )
    assert "safetensors file, but not a sketch" in refused(
        save_tensors({"x": np.zeros(2)}, metadata={"format": "pt"})
    )
    for message in (
        refused(b""),
        refused(b"a,b\n1,2\n"),
        refused(save_tensors({"x": np.zeros(2)})),
        refused(DATA[:50]),
    ):
        assert "make one from the rows with ckm.sketch" in message
    assert "truncated" in refused(DATA[:50])
    assert "checksum" in refused(DATA[:-1] + bytes([DATA[-1] ^ 1]))


class Bomb:
    """A pickle that would make a directory if it were opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_no_code_runs_on_load(tmp_path: Path) -> None:
    (tmp_path / "s.ckm").write_bytes(pickle.dumps(Bomb(tmp_path / "trace")))
    with pytest.raises(SketchFileError, match=r"s\.ckm is not a sketch"):
        ckm.load(tmp_path / "s.ckm")
    assert not (tmp_path / "trace").exists()


def test_a_file_of_a_later_version_asks_for_an_upgrade() -> None:
    message = refused(forge(DATA, {"version": 6, "new": "thing"}))
    assert "file format 6" in message
    assert "reads up to 5" in message
    assert "pip install -U compressive-kmeans" in message


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.0, None, LEFT_OUT])
def test_invalid_version_numbers_are_refused(version: Any) -> None:
    refused(forge(DATA, {"version": version}), "version")


def rewritten_headers() -> dict[str, str]:
    """Headers with the same contents, written in other ways."""
    header, _ = header_of(DATA)
    own = header["__metadata__"]["ckm"]
    metadata = json.loads(own)

    def dump(text: str, **options: Any) -> str:
        return json.dumps(
            header | {"__metadata__": {"ckm": text}}, **({"separators": (",", ":")} | options)
        )

    return {
        "spaces in the header": dump(own, separators=(", ", ": ")),
        "a space after the header": dump(own) + " " * 8,
        "tensors in another order": json.dumps(
            dict(reversed(header.items())), separators=(",", ":")
        ),
        "spaces in the metadata": dump(json.dumps(metadata, sort_keys=True)),
        "metadata in another order": dump(
            json.dumps(dict(reversed(metadata.items())), separators=(",", ":"))
        ),
        "another form of a number": dump(own.replace('"weight":20.0', '"weight":2e1')),
        "a key given twice": dump(own.replace('"weight":20.0', '"weight":20.0,"weight":20.0')),
        "an escaped letter": dump(own.replace('"seed"', '"\\u0073eed"')),
        "metadata beside ours": json.dumps(
            header | {"__metadata__": {"ckm": own, "note": "x"}}, separators=(",", ":")
        ),
    }


def test_the_test_helpers_reproduce_an_unchanged_file() -> None:
    header, payload = header_of(DATA)
    assert with_header(json.dumps(header, separators=(",", ":")), payload) == DATA
    assert forge(DATA) == DATA


@pytest.mark.parametrize("change", list(rewritten_headers()))
def test_a_rewritten_header_is_refused(change: str) -> None:
    data = with_header(rewritten_headers()[change], header_of(DATA)[1])
    assert data != DATA
    assert load_tensors(data).keys() == load_tensors(DATA).keys()
    refused(data)


T = dict(sorted(load_tensors(DATA).items()))


@pytest.mark.parametrize(
    "tensors",
    [
        *({name: LEFT_OUT} for name in T),
        *({name: T[name][:-1]} for name in T),
        *({name: T[name][None]} for name in T),
        *({name: np.full_like(T[name], np.nan)} for name in T if T[name].dtype.kind == "f"),
        *({name: T[name].astype(np.float16)} for name in T if T[name].dtype.kind == "f"),
        *({name: T[name].astype(np.int16)} for name in T if T[name].dtype.kind == "i"),
        {"sums": np.full((2, 6), np.inf)},
        {"sums": T["sums"].astype(np.int32)},
        {"sums": T["sums"] * 1000},
        {"lower": T["upper"], "upper": T["lower"]},
        {"turns": T["turns"][:0], "sums": T["sums"][:, :0]},
        {"pool.weights": -T["pool.weights"]},
        {"pool.keys": T["pool.keys"][::-1].copy()},
        {"more": np.zeros(3)},
    ],
    ids=lambda tensors: "+".join(
        f"{k} {'missing' if v is LEFT_OUT else f'{v.dtype}{v.shape}'}" for k, v in tensors.items()
    ),
)
def test_forged_tensors_are_refused(tensors: dict[str, Any]) -> None:
    refused(forge(DATA, tensors=tensors))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, LEFT_OUT) for name in metadata_of(DATA) if name != "sha256"),
        *(("scale", value) for value in (0, -1.0, "1", None, [1], float("nan"), float("inf"))),
        *(("count", value) for value in (-1, 0, 20.0, "20", None, True, 7, 10**400)),
        *(
            ("weight", value)
            for value in (0, -1.0, "20", None, 20, 7.0, 10**400, float("nan"), float("inf"))
        ),
        *(("seed", value) for value in (-1, 1.5, "x", {"a": 1}, True)),
        *(("tight", value) for value in ("yes", 0, None)),
        *(
            ("columns", value)
            for value in ("ab", ["a"], ["a", 1], ["a", "b", "c"], {}, [["a"], ["b"]])
        ),
        *(("distribution", value) for value in (1, None)),
        *(
            ("pool", value)
            for value in (
                None,
                {},
                "x",
                {"capacity": 2, "seen": 20},
                {"capacity": 3, "seen": 2},
                {"capacity": 3.0, "seen": 20},
            )
        ),
        ("pool", {"capacity": 3, "seen": 21}),
        ("pool", {"capacity": 3, "seen": 20, "more": 1}),
        ("more", 1),
    ],
    ids=lambda value: "left out" if value is LEFT_OUT else str(value)[:30],
)
def test_forged_metadata_is_refused(name: str, value: Any) -> None:
    refused(forge(DATA, {name: value}))


@pytest.mark.parametrize(
    "tensors",
    [
        {"lower": np.full(2, np.nan)},
        {"lower": np.zeros(2)},
        {"sums": np.ones((2, 6), np.int64)},
        {"first": np.ones(2)},
    ],
)
def test_a_forged_sketch_of_zero_rows_is_refused(tensors: dict[str, Any]) -> None:
    """It would be taken for the identity, and change the sketches it is added to."""
    refused(forge(serialise(Sketch.empty(small().frequencies)), tensors=tensors))


def test_a_wrong_checksum_is_refused() -> None:
    header, payload = header_of(DATA)
    metadata = metadata_of(DATA) | {"sha256": "0" * 64}
    header["__metadata__"]["ckm"] = canonical(metadata)
    refused(with_header(json.dumps(header, separators=(",", ":")), payload), "checksum")


# Reading and writing


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"There is no file .*none\.ckm; check the name"):
        ckm.load(tmp_path / "none.ckm")
    with pytest.raises(SketchFileError, match="is a directory"):
        ckm.load(tmp_path)
    with pytest.raises(SketchFileError, match=r"a{50}.*(too long|cannot be read)"):
        ckm.load(tmp_path / ("a" * 300))


def sparse(path: Path, start: bytes, size: int = 2**40) -> Path:
    """A file of `size` bytes (a terabyte) with this start and zeros after it."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def announcing(n_bytes: int) -> bytes:
    """The start of a sketch whose header announces a tensor of this many bytes."""
    header, _ = header_of(DATA)
    header["turns"]["data_offsets"][1] = n_bytes
    return with_header(json.dumps(header, separators=(",", ":")), b"")


@pytest.mark.parametrize("item", [b"[],", b"{},", b'"aa",', b'{"":0},', b"1e5,", b"[[[[[]]]]],"])
@pytest.mark.parametrize("n_bytes", [2**26, 2**24, pytest.param(3 * 2**20, marks=pytest.mark.slow)])
def test_a_header_of_many_items_takes_little_memory(
    tmp_path: Path, item: bytes, n_bytes: int
) -> None:
    start = b'{"a":['
    text = start + item * ((n_bytes - len(start) - 3) // len(item)) + b"0]}"
    path = tmp_path / "hostile.ckm"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    tracemalloc.start()
    with pytest.raises(SketchFileError):
        ckm.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27


def test_names_that_would_not_be_read_again_are_not_written(tmp_path: Path) -> None:
    f = ckm.draw_frequencies(4, 1)
    with pytest.raises(
        OutputError, match=r"names of columns .* take 17,\d+,\d+ bytes, where a header"
    ):
        ckm.Sketch.empty(f, ["a" * 17_000_000]).save(tmp_path / "s.ckm")
    with pytest.raises(OutputError, match=r"take 1,0\d+,\d+ items, where a header has at most"):
        ckm.Sketch.empty(f, ["," * 1_050_000]).save(tmp_path / "s.ckm")
    assert not list(tmp_path.iterdir())
    largest = ckm.Sketch.empty(f, ["a" * 16_700_000])
    largest.save(tmp_path / "s.ckm")
    assert ckm.load(tmp_path / "s.ckm") == largest


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"\xff" * 16, "is not a sketch"),
        (b"", "is not a sketch"),
        (struct.pack("<Q", 2**26), "is not a sketch"),
        (struct.pack("<Q", 2**24) + b"{", "header is not readable"),
        (struct.pack("<Q", 2**26) + b"{", "header of 67,108,864 bytes, and at most 16,777,216"),
        (DATA, "longer than its header says"),
        (announcing(2**30), "longer than its header says"),
        (announcing(2**50), "truncated"),
        (announcing(-5), "longer than its header says"),
    ],
    ids=[
        "text",
        "zeros",
        "header of zeros",
        "brace",
        "long header",
        "sketch",
        "1 GiB",
        "1 PiB",
        "negative",
    ],
)
@pytest.mark.parametrize("kind", [SKETCH, CHECKPOINT], ids=["sketch", "checkpoint"])
def test_a_huge_file_is_not_read_into_memory(
    tmp_path: Path, kind: ContainerKind, start: bytes, reason: str
) -> None:
    path = sparse(tmp_path / "huge.ckm", start)
    limit = 4 * 2**24  # a few copies of the longest header
    tracemalloc.start()
    with pytest.raises(kind.error, match=reason.replace("sketch", kind.noun)):
        read_container(kind, path)
    assert tracemalloc.get_traced_memory()[1] < limit
    tracemalloc.stop()


@pytest.mark.parametrize("kind", [SKETCH, CHECKPOINT], ids=["sketch", "checkpoint"])
def test_pipes_and_devices_are_refused_at_once(tmp_path: Path, kind: ContainerKind) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(kind.error, match=f"{path} is a pipe or a device, not a file; write"):
            read_container(kind, path)
    with pytest.raises(SketchFileError, match="fifo is a pipe"):
        ckm.load(tmp_path / "fifo")


@pytest.mark.parametrize("step", ["replace", "fsync"])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()],
    ids=["full disk", "interrupt"],
)
def test_a_failed_save_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "s.ckm"
    path.write_bytes(b"old")

    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    expected = OutputError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(
        expected,
        match=r"Cannot write .*s\.ckm: No space left on device; choose"
        if expected is OutputError
        else None,
    ):
        small().save(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["s.ckm"]


@pytest.mark.parametrize("mode", [None, 0o600, 0o644])
def test_saving_replaces_and_respects_permissions(tmp_path: Path, mode: int | None) -> None:
    """A new file has the permissions of the umask, a replaced one those it had."""
    path = tmp_path / "s.ckm"
    if mode is not None:
        path.write_bytes(b"old")
        path.chmod(mode)
    before = os.umask(0o027)
    try:
        small().save(path)
    finally:
        os.umask(before)
    assert path.read_bytes() == DATA
    assert stat.S_IMODE(path.stat().st_mode) == (0o640 if mode is None else mode)


@pytest.mark.parametrize(
    ("name", "seen", "remedy"),
    [
        ("", "is a directory", "name a file in it"),
        ("missing/s.ckm", "folder .*missing does not exist", "make it first"),
        (
            "file/s.ckm",
            "folder .*file does not exist|not a folder|Not a directory",
            "make it first|choose another",
        ),
        ("a" * 300, "too long", "choose another"),
        ("fifo", "not a (regular )?file", "choose another"),
    ],
)
def test_paths_that_cannot_be_written_are_refused(
    tmp_path: Path, name: str, seen: str, remedy: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OutputError, match=rf"Cannot write (?s:.*)({seen})(?s:.*)({remedy})"):
        small().save(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["fifo", "file"]
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode), (
        "a pipe or device is not replaced by a file"
    )


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s.ckm").write_bytes(b"old")
    # For root, who may run this test, nothing is read-only.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OutputError, match=r"s\.ckm: the file is read-only; choose another"):
        small().save(tmp_path / "s.ckm")
    assert (tmp_path / "s.ckm").read_bytes() == b"old"


def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(
        OutputError, match=r"Cannot write .*s\.ckm: Permission denied.*choose another"
    ):
        small().save(tmp_path / "s.ckm")
