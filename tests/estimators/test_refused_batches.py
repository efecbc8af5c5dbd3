"""`partial_fit` adds a batch whole or not at all, also from several threads."""

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._core.storage import serialise
from ckm.errors import CkmError, HeadWarning

X = np.random.default_rng(0).normal(size=(40_000, 3)) + np.repeat([[0.0], [9.0]], 20_000, axis=0)
X = np.random.default_rng(1).permutation(X)
REFUSED: dict[str, Any] = {
    "missing": np.vstack([X[:9], [[np.nan, 0.0, 0.0]]]),
    "too large": [[1e300, 0.0, 0.0]],
    "narrow": X[:5, :2],
    "masked": np.ma.masked_greater(X[:5], 0),
    "text": [["a", "b", "c"]],
    "iterable": [X[:5], np.full((1, 3), 1e300)],
}


def new_model() -> Any:
    return ckm.CompressiveKMeans(2, sketch_size=40, random_state=0, n_jobs=1)


def fitted_model() -> Any:
    return new_model().fit(X[:1000])


def continued_model() -> Any:
    return new_model().partial_fit(X[:20_000])


@pytest.mark.parametrize("make", [new_model, fitted_model, continued_model])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_batch_changes_nothing(make: Any, kind: str) -> None:
    if make is new_model and kind == "narrow":
        pytest.skip("a new model takes any number of columns")
    plain = make()
    tried = make()
    before = {name: value for name, value in vars(tried).items() if name != "_state_lock"}
    for _ in range(2):
        with pytest.raises((CkmError, ValueError)):
            tried.partial_fit(REFUSED[kind])
    after = {name: value for name, value in vars(tried).items() if name != "_state_lock"}
    assert after.keys() == before.keys()
    assert all(after[name] is before[name] for name in before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in (plain, tried):
            model.partial_fit(X[20_000:30_000])
        assert serialise(tried.sketch_) == serialise(plain.sketch_)
        assert np.array_equal(tried.cluster_centers_, plain.cluster_centers_)


def test_a_refused_first_batch_settles_neither_names_nor_width() -> None:
    model = new_model()
    with pytest.raises(CkmError):
        model.partial_fit(pd.DataFrame({"a": [1e300], "b": [0.0]}))
    assert not hasattr(model, "n_features_in_")
    assert not hasattr(model, "feature_names_in_")
    assert model.partial_fit(X[:100]).sketch_.count == 100


def test_a_batch_whose_warning_is_an_error_is_not_counted_twice() -> None:
    model = continued_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HeadWarning):
            model.partial_fit(X[20_000:])
        model.partial_fit(X[20_000:])
        assert model.sketch_.count == 40_000


def test_threads_that_share_a_model_lose_no_row() -> None:
    model = ckm.CompressiveKMeans.from_sketch(
        ckm.sketch(X[:500], sketch_size=40, random_state=0), 2, random_state=0, n_jobs=1
    )
    batches = [X[i : i + 1000] for i in range(0, 40_000, 1000)]

    def add(batch: Any) -> int:
        model.partial_fit(batch)
        # Reads the sketch, and sometimes decodes it, while other threads add rows.
        count = int(model.sketch_.count)
        if count % 7000 == 500:
            model.predict(batch)
        return count

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(add, batches))
    assert max(counts) == model.sketch_.count == 40_500
    expected = ckm.merge(
        [ckm.sketch(X, like=model.sketch_), ckm.sketch(X[:500], like=model.sketch_)]
    )
    assert model.sketch_ == expected
    # What was decoded on the way was not kept for more rows.
    again = ckm.CompressiveKMeans.from_sketch(model.sketch_, 2, random_state=0)
    assert model.solution_.cost == pytest.approx(again.solution_.cost)


def test_threads_that_share_a_new_model_lose_no_row() -> None:
    model = new_model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(model.partial_fit, [X[i : i + 500] for i in range(0, 40_000, 500)]))
        assert model.sketch_.count == 40_000


def test_a_model_between_batches_can_be_copied_and_pickled() -> None:
    model = new_model().partial_fit(X[:100])
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.partial_fit(X[100:200]).sketch_.count == 200
        assert model.sketch_.count == 100
