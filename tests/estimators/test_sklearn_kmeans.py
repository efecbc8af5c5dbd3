"""The tests that scikit-learn has for its own `KMeans` and `MiniBatchKMeans`, run on
`CompressiveKMeans`.

They are taken from the installed version: each test that is parametrised by an estimator gets ours,
and so does each one that makes a `KMeans` itself. `NOT_FOR_US` names all others, with the reason.
"""

from importlib.util import find_spec, module_from_spec
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import MiniBatchKMeans

from ckm import CompressiveKMeans

_HELPERS = "it tests private functions of scikit-learn"
_ALGORITHM = "it compares Lloyd's algorithm with Elkan's (algorithm=)"
_COPY = "nothing is copied or centred in place, so there is no copy_x="
_BATCH_LABELS = "labels_ are those of fit: partial_fit keeps no rows, and decodes when asked"
_MINI_BATCHES = "it tests how mini-batches move centroids (batch_size=, max_no_improvement=)"
# Tests that cannot apply, with the reason.
NOT_FOR_US = {
    "test_euclidean_distance": _HELPERS,
    "test_inertia": _HELPERS,
    "test_is_same_clustering": _HELPERS,
    "test_minibatch_reassign": _HELPERS,
    "test_minibatch_update_consistency": _HELPERS,
    "test_relocate_empty_clusters": _HELPERS,
    "test_sample_weight_init": _HELPERS,
    "test_sample_weight_zero": _HELPERS,
    "test_k_means_function": "it tests the function k_means",
    "test_kmeans_plusplus_dataorder": "it tests the function kmeans_plusplus",
    "test_kmeans_plusplus_norms": "it tests the function kmeans_plusplus",
    "test_kmeans_plusplus_output": "it tests the function kmeans_plusplus",
    "test_kmeans_plusplus_wrong_params": "it tests the function kmeans_plusplus",
    "test_k_means_1_iteration": _ALGORITHM,
    "test_kmeans_convergence": _ALGORITHM,
    "test_kmeans_elkan_iter_attribute": _ALGORITHM,
    "test_kmeans_elkan_results": _ALGORITHM,
    "test_kmeans_relocated_clusters": _ALGORITHM,
    "test_kmeans_results": _ALGORITHM,
    "test_kmeans_verbose": _ALGORITHM,
    "test_relocating_with_duplicates": _ALGORITHM,
    "test_warning_elkan_1_cluster": _ALGORITHM,
    "test_kmeans_copyx": _COPY,
    "test_minibatch_kmeans_partial_fit_init": _BATCH_LABELS,
    "test_minibatch_declared_convergence": _MINI_BATCHES,
    "test_minibatch_iter_steps": _MINI_BATCHES,
    "test_minibatch_kmeans_init_size": _MINI_BATCHES,
    "test_minibatch_kmeans_warning_init_size": _MINI_BATCHES,
    "test_minibatch_sensible_reassign": _MINI_BATCHES,
    "test_minibatch_with_many_reassignments": _MINI_BATCHES,
}


# A test that makes a `MiniBatchKMeans`, and holds for any estimator.
WITH_BATCHES = ("test_minibatch_kmeans_verbose",)


def _load(name: str) -> dict[str, FunctionType]:
    """The tests of scikit-learn's module, which finds our estimator by this name."""
    spec = find_spec("sklearn.cluster.tests.test_k_means")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    setattr(module, name, CompressiveKMeans)
    return {test: value for test, value in vars(module).items() if test.startswith("test_")}


def _takes_estimators(mark: Any) -> bool:
    return mark.name == "parametrize" and mark.args[0].split(",")[0] in ("Estimator", "Klass")


def _parametrised_by_ours(mark: Any) -> Any:
    """A parametrisation by estimators, with ours in place of `MiniBatchKMeans`, and no other."""
    if not _takes_estimators(mark):
        return mark
    names, values = mark.args
    ours = []
    for value in values:
        estimator, *others = value if isinstance(value, tuple) else (value,)
        if estimator is MiniBatchKMeans:
            ours.append((CompressiveKMeans, *others) if others else CompressiveKMeans)
    return pytest.mark.parametrize(names, ours).mark


def _marks(test: FunctionType) -> list[Any]:
    return list(getattr(test, "pytestmark", []))


def _tests() -> dict[str, FunctionType]:
    """All tests that apply."""
    tests = _load("KMeans")
    with_batches = _load("MiniBatchKMeans")
    tests |= {name: with_batches[name] for name in WITH_BATCHES}
    tests = {name: test for name, test in tests.items() if name not in NOT_FOR_US}
    for test in tests.values():
        vars(test)["pytestmark"] = list(map(_parametrised_by_ours, _marks(test)))
    return tests


# Some tests ask for more clusters than there are distinct rows, or than a hundred rows have.
pytestmark = pytest.mark.filterwarnings("ignore::ckm.errors.ClustersWarning")
globals().update(_tests())


@pytest.fixture
def global_random_seed() -> int:
    """The seed that scikit-learn's tests take by default."""
    return 42


@pytest.fixture
def global_dtype() -> type:
    """The precision that scikit-learn's tests take by default."""
    return np.float64


def test_every_test_that_takes_an_estimator_takes_ours() -> None:
    tests = _load("KMeans")
    with_estimators = {
        name for name, test in tests.items() if any(map(_takes_estimators, _marks(test)))
    }
    assert len(with_estimators) >= 20
    assert not with_estimators & NOT_FOR_US.keys()
