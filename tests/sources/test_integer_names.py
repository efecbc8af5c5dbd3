"""Names of columns that are integers are names: they are found in any order, and columns are never
mixed up silently. The integers from zero on, in order, are what data frames have without names.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._sources import ColumnRequest, open_source
from ckm.errors import DataError, MismatchError, ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3)) + 30 * RNG.integers(3, size=(600, 1)) * [1, 2, 3]
FRAME = pd.DataFrame(X, columns=[3, 1, 2])
REORDERED = FRAME[[1, 2, 3]]
OPTIONS: dict[str, Any] = {"n_clusters": 3, "random_state": 0}


@pytest.fixture(scope="module")
def sketch() -> ckm.Sketch:
    return ckm.sketch(FRAME, **OPTIONS)


def test_a_sketch_keeps_them(sketch: ckm.Sketch) -> None:
    assert sketch.columns == ("3", "1", "2")
    assert ckm.sketch(pd.DataFrame(X), **OPTIONS).columns is None
    tuples = pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], [1, 2, 3]]))
    assert ckm.sketch(tuples, **OPTIONS).columns == ("('a', 1)", "('a', 2)", "('a', 3)")


@pytest.mark.parametrize(
    "data",
    [
        REORDERED,
        REORDERED.rename(columns=str),
        REORDERED.assign(**{"7": 1.0}),
        [REORDERED[:200], FRAME[200:]],
        (lambda: iter([FRAME[:200], REORDERED[200:]])),
    ],
    ids=["frame", "text", "more columns", "batches", "function"],
)
def test_like_finds_them(sketch: ckm.Sketch, data: Any) -> None:
    assert ckm.sketch(data, like=sketch) == sketch


def test_data_without_names_is_matched_by_position(sketch: ckm.Sketch) -> None:
    assert ckm.sketch(X, like=sketch) == sketch
    assert ckm.sketch(pd.DataFrame(X), like=sketch) == sketch


def test_other_names_are_refused(sketch: ckm.Sketch) -> None:
    other = pd.DataFrame(X, columns=[3, 1, 4])
    with pytest.raises(MismatchError, match="has no column '2'"):
        ckm.sketch(other, like=sketch)
    with pytest.raises(MismatchError, match="has no column '2'"):
        ckm.decode(sketch, **OPTIONS).predict(other)


def test_columns_and_weights_are_found_by_integer_and_by_text() -> None:
    for columns, weight in (([2, 0], 1), (["2", "0"], "1")):
        source = open_source(pd.DataFrame(abs(X)), ColumnRequest(columns, weight))
        assert source.columns == ("2", "0")
        rows = next(iter(source.chunks())).rows
        np.testing.assert_array_equal(rows[:, 0], abs(X)[: len(rows), 2])
    with pytest.raises(ParameterError, match="no column 5; the columns are 0, 1, 2"):
        open_source(pd.DataFrame(X), ColumnRequest([5]))
    with pytest.raises(ParameterError, match="named twice"):
        open_source(pd.DataFrame(X), ColumnRequest([1, "1"]))


def test_chosen_columns_are_found_again() -> None:
    chosen = ckm.sketch(pd.DataFrame(X), columns=[2, 0, 1], **OPTIONS)
    assert chosen.columns == ("2", "0", "1")
    assert ckm.sketch(pd.DataFrame(X), like=chosen) == chosen
    assert ckm.sketch(X[:, [2, 0, 1]], like=chosen) == chosen


def test_positions_in_another_order_are_refused() -> None:
    """A sketch without names is matched by position, which such names contradict."""
    unnamed = ckm.sketch(pd.DataFrame(X), **OPTIONS)
    backwards = pd.DataFrame(X[:, ::-1], columns=[2, 1, 0])
    sketcher = ckm.Sketcher(**OPTIONS).update(X)
    model = ckm.CompressiveKMeans(**OPTIONS).fit(pd.DataFrame(X))
    for use in (
        lambda data: ckm.sketch(data, like=unnamed),
        ckm.decode(unnamed, **OPTIONS).predict,
        sketcher.update,
        model.predict,
        model.partial_fit,
        lambda data: model.predict([data]),
    ):
        with pytest.raises(MismatchError, match=r"2, 1, 0, and .* without names"):
            use(backwards)
        use(pd.DataFrame(X, columns=[7, 8, 9]))


def test_names_that_read_alike_are_refused() -> None:
    with pytest.raises(DataError, match="read alike, 1 and '1'"):
        ckm.sketch(pd.DataFrame(X, columns=[1, "1", 2]), **OPTIONS)


def test_solutions_find_them(sketch: ckm.Sketch) -> None:
    found = ckm.decode(sketch, **OPTIONS)
    np.testing.assert_array_equal(found.predict(REORDERED), found.predict(FRAME))
    assert found.score(REORDERED) == found.score(FRAME)


def test_batches_of_a_sketcher_find_them(sketch: ckm.Sketch) -> None:
    sketcher = ckm.Sketcher(**OPTIONS).update(FRAME).update(REORDERED)
    assert sketcher.result().columns == ("3", "1", "2")
    once = ckm.sketch(FRAME, like=sketcher.result())
    assert sketcher.result() == once + once


METHODS = ("predict", "transform", "score", "partial_fit")


@pytest.fixture(params=["fit", "from_sketch", "pickled"])
def model(request: pytest.FixtureRequest, sketch: ckm.Sketch) -> ckm.CompressiveKMeans:
    if request.param == "from_sketch":
        return ckm.CompressiveKMeans.from_sketch(sketch, **OPTIONS)
    fitted = ckm.CompressiveKMeans(**OPTIONS).fit(FRAME)
    if request.param == "fit":
        return fitted
    import pickle

    return pickle.loads(pickle.dumps(fitted))


def test_the_estimator_needs_them_in_the_order_of_fit(model: ckm.CompressiveKMeans) -> None:
    labels = model.predict(FRAME)
    for method in METHODS:
        for data in (REORDERED, pd.DataFrame(X, columns=[7, 8, 9])):
            with pytest.raises(MismatchError, match="where this model was fitted to 3, 1, 2"):
                getattr(model, method)(data)
    np.testing.assert_array_equal(model.predict(FRAME.rename(columns=str)), labels)
    # Data that is not in memory is matched by name.
    np.testing.assert_array_equal(model.predict([REORDERED]), labels)
    assert model.partial_fit(FRAME).sketch_.columns == ("3", "1", "2")


def test_feature_names_are_only_text_as_in_scikit_learn() -> None:
    model = ckm.CompressiveKMeans(**OPTIONS).fit(FRAME)
    assert not hasattr(model, "feature_names_in_")
    assert list(model.fit(FRAME.rename(columns=str)).feature_names_in_) == ["3", "1", "2"]
    assert not hasattr(model.fit(FRAME), "feature_names_in_")
    # A new fit forgets the names of the last.
    assert model.fit(X).sketch_.columns is None
    model.predict(pd.DataFrame(X, columns=[7, 8, 9]))


def test_text_frames_of_another_order_are_refused() -> None:
    model = ckm.CompressiveKMeans(**OPTIONS).fit(FRAME)
    with pytest.raises(MismatchError, match="fitted to 3, 1, 2"):
        model.predict(REORDERED.rename(columns=str))
