"""`CompressiveKMeans` follows scikit-learn's conventions: parameters, data frames, pipelines
(scikit-learn's own checks are in test_sklearn.py).
"""

import pickle
import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from fits import assert_same_fit, model
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ckm
from ckm import CompressiveKMeans
from ckm._sources.arrays import ArraySource
from ckm._sources.blocks import BLOCK_ROWS
from ckm.errors import (
    ClustersWarning,
    DataError,
    HeadWarning,
    MismatchError,
    NonFiniteError,
    ParameterError,
)


@pytest.fixture(scope="module")
def fitted(clusters: np.ndarray) -> CompressiveKMeans:
    return model().fit(clusters)


def test_unfitted() -> None:
    m = model()
    for name in ("cluster_centers_", "weights_", "solution_"):
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(m, name)
    for method in ("predict", "transform", "score"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(m, method)(np.zeros((2, 2)))
    with pytest.raises(
        NotFittedError, match="This model has no labels_ before fit; call fit first"
    ):
        m.labels_


def test_clone_and_parameters(fitted: CompressiveKMeans) -> None:
    m = clone(fitted)
    assert m.get_params() == fitted.get_params()
    assert not hasattr(m, "sketch_")
    assert clone(model(n_init=3, scale=2.0)).get_params()["scale"] == 2.0
    assert "n_clusters=3" in repr(m)


@pytest.mark.parametrize("batches", [False, True])
def test_pickle(clusters: np.ndarray, batches: bool) -> None:
    m = model().partial_fit(clusters) if batches else model().fit(clusters)
    again = pickle.loads(pickle.dumps(m))
    assert_same_fit(again, m)
    assert again.sketch_ == m.sketch_
    assert np.array_equal(again.predict(clusters), m.predict(clusters))
    again.partial_fit(clusters)
    # after fit, all of its rows have chosen the frequencies
    with pytest.warns(HeadWarning) if batches else nullcontext():
        assert again.sketch_.count == 2 * len(clusters)


def test_no_rows_are_kept_after_fit(clusters: np.ndarray) -> None:
    m = model().fit(clusters)
    assert m.sketch_.pool is None
    state = pickle.dumps(clone(m).set_params(pool=1000).fit(clusters))
    assert len(state) < clusters.nbytes, "a pool of 1000 rows would be half of the data"
    labels = m.labels_.tobytes()
    assert clusters[:5].tobytes() not in state.replace(labels, b"")


def test_threads_change_nothing() -> None:
    X = ckm.datasets.gaussian_mixture(2 * BLOCK_ROWS + 5, 3, 2, separation=20, random_state=0).rows
    one, two, four = (model(n_jobs=n_jobs).fit(X) for n_jobs in (1, 2, 4))
    for m in (two, four):
        assert_same_fit(m, one)
        assert np.array_equal(m.labels_, one.labels_)
        assert m.inertia_ == one.inertia_
        assert np.array_equal(m.transform(X), one.transform(X))


def test_starting_from_rows_needs_no_pool_in_fit(clusters: np.ndarray) -> None:
    for init in ("sample", "k++"):
        m = model(pool=0, init=init).fit(clusters)
        assert m.cluster_centers_.shape == (3, 2)
        assert m.sketch_.pool is None
        with pytest.raises(
            ParameterError, match=rf"init='{init.replace('+', '[+]')}' starts from rows.*pool="
        ):
            model(pool=0, init=init).partial_fit(clusters)


def test_the_input_is_left_alone(clusters: np.ndarray) -> None:
    X = clusters.copy()
    X.flags.writeable = False
    w = np.ones(len(X))
    w.flags.writeable = False
    m = model().fit(X, sample_weight=w)
    m.predict(X), m.transform(X), m.score(X), m.partial_fit(X)
    assert np.array_equal(X, clusters)


def test_cluster_centers_are_read_only(fitted: CompressiveKMeans) -> None:
    """They come from the sketch: changes to them would be lost."""
    with pytest.raises(ValueError, match="read-only"):
        fitted.cluster_centers_[:] = 0


def test_a_fit_that_fails_leaves_nothing_of_the_old_one(clusters: np.ndarray) -> None:
    m = model().fit(clusters)
    with pytest.raises(ValueError, match="n_samples=1"):
        m.fit(np.ones((1, 50)))
    with pytest.raises(NotFittedError):
        m.transform(np.ones((1, 50)))


@pytest.mark.slow
def test_more_decodings_help_if_the_pool_holds_all_rows() -> None:
    X = np.random.default_rng(0).normal(size=(900, 3))
    one, ten = (
        CompressiveKMeans(40, n_init=n_init, random_state=0).fit(X).inertia_ for n_init in (1, 10)
    )
    assert ten < one


def test_partial_fit_reports_at_once_what_decoding_would_report(clusters: np.ndarray) -> None:
    m = model(init="k++").fit(clusters)
    with pytest.raises(ParameterError, match="starts from rows"):
        m.partial_fit(clusters)
    with pytest.raises(ParameterError, match="too small for 500 clusters"):
        model().fit(clusters).set_params(n_clusters=500).partial_fit(clusters)


def test_the_global_seed_of_numpy_is_used(clusters: np.ndarray) -> None:
    fitted = []
    for _ in range(2):
        np.random.seed(3)
        fitted.append(CompressiveKMeans(3).fit(clusters).sketch_)
    assert fitted[0] == fitted[1]


def test_single_precision_stays_single(clusters: np.ndarray) -> None:
    X = clusters.astype(np.float32)
    m = model().fit(X)
    assert m.cluster_centers_.dtype == np.float32
    assert m.transform(X).dtype == np.float32
    assert model().fit(clusters).cluster_centers_.dtype == np.float64
    assert model().fit(clusters.round().astype(int)).cluster_centers_.dtype == np.float64
    # The same rows in double precision are the same rows.
    np.testing.assert_allclose(
        m.cluster_centers_, model().fit(X.astype(np.float64)).cluster_centers_, rtol=1e-6
    )


# Frames


FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=["east", "north"]),
    "polars": lambda X: pl.DataFrame(X, schema=["east", "north"]),
    "pyarrow": lambda X: pa.table({"east": X[:, 0], "north": X[:, 1]}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_what_arrays_give(
    clusters: np.ndarray, fitted: CompressiveKMeans, kind: str
) -> None:
    frame = FRAMES[kind](clusters)
    m = model().fit(frame)
    assert_same_fit(m, fitted)
    assert np.array_equal(m.labels_, fitted.labels_)
    assert np.array_equal(m.predict(frame), fitted.labels_)
    assert np.array_equal(m.transform(frame), fitted.transform(clusters))
    assert m.score(frame) == fitted.score(clusters)
    assert model().partial_fit(frame).partial_fit(frame).sketch_.count == 2 * len(clusters)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_names_are_kept_and_checked(clusters: np.ndarray, kind: str) -> None:
    m = model().fit(FRAMES[kind](clusters))
    assert m.feature_names_in_.tolist() == ["east", "north"]
    assert m.sketch_.columns == ("east", "north")
    assert m.solution_.columns == ("east", "north")
    wrong = FRAMES[kind](clusters)
    wrong.columns = ["north", "east"]
    with pytest.raises(ValueError, match="feature names"):
        m.predict(wrong)
    with pytest.raises(ValueError, match="feature names"):
        m.partial_fit(wrong)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        m.predict(clusters)


def test_a_sketch_from_a_fit_refuses_other_columns(clusters: np.ndarray) -> None:
    m = model().fit(FRAMES["pandas"](clusters))
    with pytest.raises(MismatchError, match="no column 'north'"):
        ckm.sketch(FRAMES["pandas"](clusters).rename(columns={"north": "up"}), like=m.sketch_)


@pytest.mark.parametrize(
    ("output", "kind"),
    [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("default", np.ndarray)],
)
def test_set_output(
    clusters: np.ndarray, fitted: CompressiveKMeans, output: str, kind: type
) -> None:
    m = clone(fitted).set_output(transform=output).fit(clusters)
    D = m.transform(clusters)
    assert isinstance(D, kind)
    assert np.array_equal(np.asarray(D), fitted.transform(clusters))
    names = ["compressivekmeans0", "compressivekmeans1", "compressivekmeans2"]
    assert m.get_feature_names_out().tolist() == names
    if output != "default":
        assert list(D.columns) == names


def test_text_columns_are_refused(clusters: np.ndarray) -> None:
    frame = FRAMES["pandas"](clusters).assign(name="x")
    with pytest.raises(DataError, match=r"Column 'name'.*columns="):
        model().fit(frame)


# With other tools of scikit-learn


def test_pipeline(clusters: np.ndarray) -> None:
    pipeline = make_pipeline(StandardScaler(), model()).fit(clusters)
    scaled = StandardScaler().fit_transform(clusters)
    assert np.array_equal(pipeline.predict(clusters), model().fit(scaled).labels_)
    assert make_pipeline(model(), StandardScaler()).fit_transform(clusters).shape == (
        len(clusters),
        3,
    )


def test_grid_search(clusters: np.ndarray) -> None:
    search = GridSearchCV(model(n_init=3), {"n_clusters": [1, 3]}, cv=2).fit(clusters)
    assert search.best_params_ == {"n_clusters": 3}


def test_random_states(clusters: np.ndarray) -> None:
    X = clusters[:300]
    assert_same_fit(
        model(random_state=np.random.RandomState(3)).fit(X),
        model(random_state=np.random.RandomState(3)).fit(X),
    )
    assert_same_fit(
        model(random_state=np.random.default_rng(3)).fit(X),
        model(random_state=np.random.default_rng(3)).fit(X),
    )
    a, b = model(random_state=None).fit(X), model(random_state=None).fit(X)
    assert a.sketch_.frequencies != b.sketch_.frequencies


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be a whole number, at least 1; got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number.*got 2.5"),
        ({"n_init": 0}, "n_init must be .* at least 1; got 0"),
        ({"pool": -1}, "pool must be .* at least 0; got -1"),
        ({"sketch_size": 2}, "m = 2 frequencies is too small for 3 clusters.*sketch_size=30"),
        ({"sketch_size": "big"}, "sketch_size must be .*got 'big'"),
        ({"scale": -1.0}, "positive, finite variance; got -1.0"),
        ({"scale": "wide"}, "positive, finite variance; got 'wide'"),
        ({"distribution": "x"}, "no frequency distribution 'x'; choose one of"),
        ({"decoder": "x"}, "no decoder 'x'; choose one of"),
        ({"decoder": ["x"]}, "no decoder .*; choose one of"),
        ({"init": "x"}, "no init 'x'; choose one of"),
        ({"device": "x"}, "no device 'x'; choose one of"),
        ({"n_jobs": 0}, "n_jobs must be .*got 0"),
        ({"random_state": "x"}, "random_state must be .*got 'x'"),
    ],
)
def test_bad_parameters(clusters: np.ndarray, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        model(**options).fit(clusters)
    with pytest.raises(ParameterError, match=message):
        model(**options).partial_fit(clusters)


class UnreadableSource(ArraySource):
    """Rows whose number and width are known; reading them fails the test."""

    def rows(self, which: Any) -> np.ndarray:
        pytest.fail("the data was read")


def test_bad_parameters_are_found_before_the_pass(clusters: np.ndarray) -> None:
    source = UnreadableSource(clusters)
    for options in (
        {"decoder": "x"},
        {"init": "x"},
        {"n_init": 0},
        {"n_clusters": 3000},
        {"sketch_size": 2},
    ):
        with pytest.raises((ParameterError, DataError)):
            model(**options).fit(source)


def test_bad_rows(clusters: np.ndarray) -> None:
    for value, message in (
        (np.nan, r"NaN \(a missing value\); drop or fill such rows first"),
        (np.inf, r"inf \(infinity\); drop"),
    ):
        X = clusters.copy()
        X[3, 1] = value
        for data in (
            X,
            X.astype(np.float32),
            scipy.sparse.csr_array(X),
            pd.DataFrame(X, columns=["0", "1"]),
        ):
            for method in (model().fit, model().partial_fit):
                with pytest.raises(NonFiniteError, match=f"^Row 3, column '?1'? holds {message}"):
                    method(data)
    with pytest.raises(
        DataError,
        match=r"The data has 2 rows \(n_samples=2\), too few for n_clusters=3; ask for at most 2",
    ):
        model().fit(clusters[:2])
    for weights, message in (
        (-np.ones(len(clusters)), "[Nn]egative"),
        (np.ones(3), "sample_weight has shape"),
        (np.full(len(clusters), np.nan), "weight 0 is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            model().fit(clusters, sample_weight=weights)


def test_no_warnings_on_ordinary_data(clusters: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(clusters).predict(clusters)


def test_fewer_clusters_than_requested_are_reported() -> None:
    X = np.repeat(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]), 500, axis=0)
    with pytest.warns(ClustersWarning, match="ask for fewer"):
        CompressiveKMeans(6, random_state=0).fit(X)
