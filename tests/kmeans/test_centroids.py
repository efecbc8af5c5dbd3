"""`Centroids`, through a `Solution`: labels and SSE equal those of the estimator, for any kind of
data, any order of columns, with and without missing values.
"""

import copy
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ckm
from ckm._kmeans.assign import Centroids, _SummaryJob
from ckm._sources import open_source
from ckm._sources.arrays import ArraySource
from ckm.errors import DataError, MismatchError, NonFiniteError, ParameterError

NAMES = ["east", "north"]


@pytest.fixture(scope="module")
def frame(clusters: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(clusters, columns=NAMES)


@pytest.fixture(scope="module", params=[False, True], ids=["unscaled", "standardised"])
def sketch(request: pytest.FixtureRequest, frame: pd.DataFrame) -> ckm.Sketch:
    rows = frame.assign(north=100 * frame.north) if request.param else frame
    return ckm.sketch(rows, n_clusters=3, standardize=request.param, random_state=0)


@pytest.fixture(scope="module")
def solution(sketch: ckm.Sketch) -> ckm.Solution:
    return ckm.decode(sketch, 3, random_state=0)


@pytest.fixture(scope="module")
def rows(frame: pd.DataFrame, solution: ckm.Solution) -> pd.DataFrame:
    return frame if solution.units is None else frame.assign(north=100 * frame.north)


def test_a_solution_labels_as_the_estimator_does(
    rows: pd.DataFrame, sketch: ckm.Sketch, solution: ckm.Solution, tmp_path: Path
) -> None:
    model = ckm.CompressiveKMeans.from_sketch(sketch, 3, random_state=0)
    expected = model.predict(rows)
    assert np.array_equal(solution.centroids, model.cluster_centers_)
    rows.assign(name="x")[["name", "north", "east"]].to_csv(tmp_path / "rows.csv", index=False)
    batches = [rows.to_numpy()[:700], rows.to_numpy()[700:]]
    for data in (
        rows,
        rows.to_numpy(),
        rows[["north", "east"]],
        pl.from_pandas(rows).lazy(),
        tmp_path / "rows.csv",
        batches,
        iter(batches),
    ):
        assert np.array_equal(solution.predict(data), expected)
    assert solution.predict(rows, n_jobs=1).tobytes() == solution.predict(rows, n_jobs=2).tobytes()
    assert solution.score(rows) == model.score(rows)
    units = 1.0 if solution.units is None else solution.units
    distances = ((rows.to_numpy()[:, None] - solution.centroids) / units) ** 2
    assert np.array_equal(distances.sum(axis=2).argmin(axis=1), expected)
    assert solution.score(rows.to_numpy()) == pytest.approx(
        -distances.sum(axis=2).min(axis=1).sum()
    )


def test_a_pickled_or_copied_solution_gives_the_same_labels(
    rows: pd.DataFrame, solution: ckm.Solution
) -> None:
    for again in (pickle.loads(pickle.dumps(solution)), copy.deepcopy(solution)):
        assert np.array_equal(again.predict(rows), solution.predict(rows))


def test_rows_with_missing_values_keep_their_places(
    rows: pd.DataFrame, solution: ckm.Solution, tmp_path: Path
) -> None:
    gaps = rows.copy()
    gaps.iloc[[0, 7, 1999], [1, 0, 1]] = np.nan
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    expected = solution.predict(rows)
    expected[[0, 7, 1999]] = -1
    for data in (
        gaps,
        gaps.to_numpy(np.float32 if solution.units is None else float),
        tmp_path / "gaps.csv",
    ):
        with pytest.raises(
            NonFiniteError,
            match=r"Row 0, column .* use nan='drop' \(of ckm.sketch, CompressiveKMeans and "
            r"Solution.predict\)",
        ):
            solution.predict(data)
        with pytest.raises(NonFiniteError):
            solution.score(data)
        assert np.array_equal(solution.predict(data, nan="drop"), expected)
    assert solution.score(gaps, nan="drop") == pytest.approx(solution.score(gaps.dropna()))
    assert (solution.predict(gaps * np.nan, nan="drop") == -1).all()
    assert np.array_equal(solution.predict(rows, nan="drop"), solution.predict(rows))
    assert len(solution.predict(gaps[:0], nan="drop")) == 0


def test_infinite_values_are_refused_also_when_missing_values_are_dropped(
    rows: pd.DataFrame, solution: ckm.Solution
) -> None:
    bad = rows.copy()
    bad.iloc[[3, 5], [1, 0]] = np.nan
    bad.iloc[5, 1] = np.inf
    bad.iloc[6, 0] = np.inf  # row 5 has a missing value too, so it is dropped
    with pytest.raises(NonFiniteError, match="Row 6, column 'east' holds inf"):
        solution.predict(bad, nan="drop")


def test_missing_rows_count_in_no_cluster(clusters: np.ndarray) -> None:
    gaps = clusters.copy()
    gaps[::10, 0] = np.nan
    C = clusters[:3]
    weights = np.arange(2000.0)
    kept = ~np.isnan(gaps[:, 0])
    for beta in (None, weights):
        labels = list[np.ndarray]()
        found = Centroids(C).summarise(
            ArraySource(gaps, weights=beta), on_labels=labels.append, nan="drop"
        )
        alone = Centroids(C).summarise(
            ArraySource(gaps[kept], weights=None if beta is None else beta[kept])
        )
        assert found.missing == 200
        assert alone.missing == 0
        assert np.array_equal(np.concatenate(labels) == -1, ~kept)
        for name in ("counts", "mass", "sse"):
            np.testing.assert_allclose(getattr(found, name), getattr(alone, name), rtol=1e-12)


def test_workers_treat_missing_values_in_the_same_way(clusters: np.ndarray) -> None:
    gaps = clusters.copy()
    gaps[5, 1] = np.nan
    source = ArraySource(gaps)
    centroids = Centroids(clusters[:3])
    labeller = pickle.loads(pickle.dumps(centroids._labeller(source, "drop")))
    assert np.array_equal(labeller(source.chunks()), centroids.label(source, nan="drop"))
    job = _SummaryJob(labeller)
    parts = [
        job.of_partition(i, ArraySource(part).chunks())
        for i, part in enumerate(np.array_split(gaps, 3))
    ]
    found = job.finish(job.merge(parts))
    assert found.missing == 1
    assert found.counts.sum() + found.missing == len(gaps)


def test_rows_with_other_columns_are_refused(rows: pd.DataFrame, solution: ckm.Solution) -> None:
    with pytest.raises(MismatchError, match="no column 'north', which this solution was made with"):
        solution.predict(rows[["east"]])
    with pytest.raises(MismatchError, match="has 1 columns where this solution has 2"):
        solution.predict(rows.to_numpy()[:, :1])
    with pytest.raises(ParameterError, match="nan must be 'error' or 'drop'; got 'keep'"):
        solution.predict(rows, nan="keep")


@pytest.mark.parametrize("method", ["predict", "transform", "score"])
def test_the_estimator_names_the_row_column_and_file(
    rows: pd.DataFrame, sketch: ckm.Sketch, method: str, tmp_path: Path
) -> None:
    model = ckm.CompressiveKMeans.from_sketch(sketch, 3, random_state=0)
    bad = rows.copy()
    bad.iloc[7, 1] = np.nan
    bad.to_csv(tmp_path / "bad.csv", index=False)
    for data, file in ((bad, ""), (tmp_path / "bad.csv", " of .*bad.csv")):
        with pytest.raises(
            NonFiniteError,
            match=f"^Row 7, column 'north'{file} holds NaN .*; drop or fill such rows first",
        ):
            getattr(model, method)(data)


def test_a_sketch_or_a_solution_is_not_taken_for_rows(
    sketch: ckm.Sketch, solution: ckm.Solution, tmp_path: Path
) -> None:
    sketch.save(tmp_path / "s.ckm")
    for take in (ckm.CompressiveKMeans(3).fit, solution.predict, open_source):
        with pytest.raises(
            DataError,
            match=r"Got a Sketch where rows are expected: ckm.decode .*, "
            r"and CompressiveKMeans.from_sketch",
        ):
            take(sketch)
        with pytest.raises(
            ckm.errors.InputFileError,
            match=r"s.ckm holds a sketch where rows are expected; decode it",
        ):
            take(tmp_path / "s.ckm")
    with pytest.raises(DataError, match=r"Got a Solution .* its centroids are rows"):
        ckm.sketch(solution, n_clusters=3)
    with pytest.raises(
        ParameterError, match=r"from_sketch takes a Sketch; got PosixPath. .* ckm.load reads one"
    ):
        ckm.CompressiveKMeans.from_sketch(tmp_path / "s.ckm", 3)
