"""Torch without a card: tensors on the CPU are arrays, and plain torch agrees with the exact kernel."""

import sys

import numpy as np
import pytest

import ckm
from ckm.errors import MissingPackageError, NonFiniteError
from ckm.kernels import load_kernel
from test_kernels import make_frequencies, make_rows


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ckm.kernels.torch", "ckm.kernels.plain"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    for kernel in ("torch", "torch-plain"):
        with pytest.raises(MissingPackageError, match=r"needs torch.*compressive-kmeans\[gpu\]"):
            ckm.sketch(np.eye(3), sketch_size=5, scale=1.0, kernel=kernel)


def test_a_tensor_on_the_cpu_is_summed_in_place_with_the_same_bits() -> None:
    torch = pytest.importorskip("torch")
    f, X = make_frequencies(3, 20, 0), make_rows(3, 1000, 0, np.float32)
    tensor, expected = torch.tensor(X), ckm.sketch(X, like=f)
    for kernel in ("auto", "numba", "torch"):
        for rows in (tensor, tensor.requires_grad_(), torch.tensor(X.T.copy()).T, tensor.double()):
            assert ckm.sketch(rows, like=f, kernel=kernel) == expected
    assert load_kernel("torch")(f, tensor, None).exact


def test_a_model_is_fitted_to_tensors_on_the_cpu(clusters: np.ndarray) -> None:
    torch = pytest.importorskip("torch")
    here, there = (ckm.CompressiveKMeans(n_clusters=3, random_state=0).fit(rows) for rows in (clusters, torch.tensor(clusters)))
    assert here.sketch_ == there.sketch_
    np.testing.assert_array_equal(here.labels_, there.labels_)


@pytest.mark.parametrize("weighted", [False, True])
def test_plain_torch_agrees_with_the_reference_and_says_so(weighted: bool) -> None:
    torch = pytest.importorskip("torch")
    f, X = make_frequencies(7, 30, 0, 1e3), make_rows(7, 3000, 0, np.float32, 1e3)
    beta = np.random.default_rng(0).gamma(1.0, size=len(X)) if weighted else None
    plain, reference = load_kernel("torch-plain")(f, torch.tensor(X), beta), load_kernel("reference")(f, X, beta)
    assert not plain.exact
    np.testing.assert_allclose(plain.sums, reference.sums, rtol=0, atol=1e-9 * 2**22 * len(X))
    np.testing.assert_array_equal(plain.lower, reference.lower)
    np.testing.assert_array_equal(plain.upper, reference.upper)
    np.testing.assert_allclose(plain.second, reference.second, rtol=1e-12)


def test_plain_torch_refuses_what_is_not_finite() -> None:
    torch = pytest.importorskip("torch")
    X = make_rows(3, 100, 0).copy()
    X[42, 1] = np.inf
    with pytest.raises(NonFiniteError, match="Row 42, column 1 holds inf"):
        load_kernel("torch-plain")(make_frequencies(3, 20, 0), torch.tensor(X), None)
