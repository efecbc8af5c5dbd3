"""Decoding by torch, on the CPU and on a card where there is one: the objectives and the k-means of the numba decoder, to rounding."""

from collections.abc import Iterator

import numpy as np
import pytest

import ckm
from ckm import atoms, decoding, quantise
from ckm.atoms import Problem
from ckm.cloud import Cloud
from ckm.errors import ParameterError

torch = pytest.importorskip("torch")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no card"))]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[object]:
    """Where torch computes; small blocks, so that there are several."""
    from ckm import atoms_card, cloud_card

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atoms_card, "_PAIRS", 500)
        patch.setattr(cloud_card, "_PAIRS", 5000)
        yield torch.device(request.param)


@pytest.fixture
def everything_there(monkeypatch: pytest.MonkeyPatch, device: object) -> None:
    """However small it is, and even if the card is the CPU."""
    from ckm import atoms_card, cloud_card

    monkeypatch.setattr(decoding, "_WORTH_A_CARD", 0)
    monkeypatch.setattr(decoding, "first_card", lambda: device)
    monkeypatch.setattr(atoms_card, "_PAIRS", 2**23)
    monkeypatch.setattr(cloud_card, "_PAIRS", 2**23)


def make_sketch(K: int = 6, n: int = 3, distribution: str = "multiscale", pool: int = 0, separation: float = 2.5) -> ckm.Sketch:
    X = ckm.datasets.gaussian_mixture(5000, K, n, separation=separation, random_state=0).rows
    return ckm.sketch(X, n_clusters=K, distribution=distribution, pool=pool, random_state=0)


@pytest.mark.parametrize("K", [1, 7, 40])
@pytest.mark.parametrize("distribution", ["multiscale", "structured"])
def test_costs_and_gradients_are_those_of_the_cpu(device: object, K: int, distribution: str) -> None:
    sketch, rng = make_sketch(distribution=distribution), np.random.default_rng(K)
    here, there = Problem.of(sketch), Problem.of(sketch, device)
    C, alpha, widths = rng.normal(size=(K, 3)), rng.random(K) / K, rng.random((K, 3))
    for function, arguments in (
        (atoms.blurred_cost, (C, alpha, 0.3)),
        (atoms.gaussian_cost, (C, alpha, widths)),
        (atoms.residual, (C, alpha, 0.2)),
        (atoms.correlations, (here.z, C)),
    ):
        expected, found = (np.hstack([np.ravel(part) for part in _parts(function(problem, *arguments))]) for problem in (here, there))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10, err_msg=function.__name__)
    np.testing.assert_allclose(atoms.fit_weights(there, C, 0.2), atoms.fit_weights(here, C, 0.2), rtol=1e-7, atol=1e-9)


def _parts(found: object) -> tuple[object, ...]:
    return found if isinstance(found, tuple) else (found,)


def test_stages_and_parts_of_a_problem_stay_there(device: object) -> None:
    problem = Problem.of(make_sketch(), device)
    assert all(stage.card is not None for stage in problem.stages)
    assert problem.without(problem.mean[None], np.array([0.1]), problem.lower, problem.upper).card is not None


@pytest.mark.parametrize("K", [1, 9, 60])
def test_k_means_asks_a_card_as_it_asks_the_cpu(device: object, K: int) -> None:
    from ckm.cloud_card import CardCloud

    rng = np.random.default_rng(K)
    points, beta, C = rng.normal(size=(2000, 3)), rng.integers(0, 3, 2000).astype(float), rng.normal(size=(K, 3))
    here, there = Cloud(points, beta), CardCloud(points, beta, device)
    for expected, found in zip((*here.nearest(C), *here.sums(C)), (*there.nearest(C), *there.sums(C)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if K > 1:
        for expected, found in zip(here.two_nearest(C), there.two_nearest(C), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(there.seeds(K, np.random.default_rng(0)), here.seeds(K, np.random.default_rng(0)))


def test_points_that_are_all_the_same_have_seeds(device: object) -> None:
    points = np.zeros((50, 2))
    C, shares, spread = quantise.place(points, None, 3, np.random.default_rng(0), device=device)
    np.testing.assert_array_equal(C, np.zeros((3, 2)))
    assert (shares.sum(), spread) == (1.0, 0.0)


@pytest.mark.usefixtures("everything_there")
@pytest.mark.parametrize(("decoder", "pool", "separation"), [("density", 0, 6.0), ("density", 300, 1.5), ("clompr", 0, 2.5)])
def test_decoding_there_is_as_good_and_gives_the_same_bits_again(decoder: str, pool: int, separation: float) -> None:
    K = 4
    X = ckm.datasets.gaussian_mixture(5000, K, 3, separation=separation, random_state=0).rows
    sketch = make_sketch(K, 3, pool=pool, separation=separation)
    here = ckm.decode(sketch, K, decoder=decoder, random_state=0)
    there, again = (ckm.decode(sketch, K, decoder=decoder, random_state=0, kernel="torch", n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(there.centroids, again.centroids)
    assert there.score(X) / here.score(X) == pytest.approx(1, abs=0.02)


def test_small_sketches_are_decoded_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "first_card", lambda: pytest.fail("it was asked for a card"))
    sketch = make_sketch(3, 2)
    found = [ckm.decode(sketch, 3, random_state=0, kernel=kernel).centroids for kernel in ("auto", "numba", "torch")]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("kernel", ["auto", "numba"])
def test_only_who_asks_decodes_on_a_card(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_WORTH_A_CARD", 0)
    monkeypatch.setattr(decoding, "first_card", lambda: pytest.fail("it was asked for a card"))
    ckm.decode(make_sketch(3, 2), 3, random_state=0, kernel=kernel)


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(ParameterError, match="no kernel 'abacus'"):
        ckm.decode(make_sketch(3, 2), 3, kernel="abacus")


@pytest.mark.usefixtures("everything_there")
@pytest.mark.parametrize("kernel", ["auto", "torch", "numba"])
def test_the_estimator_hands_its_kernel_on(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def decode(*args: object, kernel: str, **search: object) -> object:
        asked.append(kernel)
        return ckm.decode(*args, **search)

    monkeypatch.setattr("ckm.estimator.decode", decode)
    X = ckm.datasets.gaussian_mixture(500, 3, 2, random_state=0).rows
    model = ckm.CompressiveKMeans(3, kernel=kernel, random_state=0).fit(X)
    model._decode(on_card=True)
    assert asked == [kernel, "torch" if kernel == "auto" else kernel]
