"""`ckm.compare`: samples of one distribution pass, changes are found and named."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ckm
from ckm._analysis.comparing import combine
from ckm._core.storage import deserialise, serialise
from ckm.errors import DataError, MismatchError, ParameterError

K = 4
MEANS = np.array([[0.0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 6]])


def rows(count: int, seed: int, shares: Any = None, shift: Any = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = MEANS[rng.choice(K, p=shares, size=count)]
    return centres + rng.normal(size=(count, 3)) + np.array(shift)


FIRST = ckm.sketch(rows(3000, 0), n_clusters=K, random_state=0)


def like_first(X: np.ndarray, **options: Any) -> ckm.Sketch:
    return ckm.sketch(X, like=FIRST, **options)


SAME = like_first(rows(3000, 1))


@pytest.fixture(params=["cells", pytest.param("sketch only", marks=pytest.mark.slow)])
def first(request: pytest.FixtureRequest) -> ckm.Sketch:
    return FIRST if request.param == "cells" else FIRST.without_cells()


# One distribution


def test_samples_of_one_distribution_do_not_differ(first: ckm.Sketch) -> None:
    found = ckm.compare(first, ckm.sketch(rows(3000, 1), like=first))
    assert found.p_value > 0.05
    assert found.effect_interval[0] == 0
    assert found.statistic == pytest.approx(found.expected_statistic, rel=0.5)
    assert min(column.p_value for column in found.columns) > 0.05
    assert min(cluster.p_value for cluster in found.clusters) > 0.05
    assert str(found).startswith("No difference found")


def test_a_sketch_does_not_differ_from_itself() -> None:
    found = ckm.compare(FIRST, FIRST)
    assert found.p_value > 0.9
    assert (found.statistic, found.effect) == (0, 0)
    assert all(column.shift == 0 and column.variance_ratio == 1 for column in found.columns)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_false_alarms_are_as_many_as_promised(weighted: bool) -> None:
    # Binomial: 600 repeats at 5 % give 14 to 48 with a probability of 0.999.
    rng = np.random.default_rng(5)
    p_values = []
    for _ in range(600):
        sketches = []
        for size in (300, 600):
            weights = rng.exponential(size=size) if weighted else None
            X = rng.standard_t(3, size=(size, 3))
            sketches.append(like_first(X, sample_weight=weights, n_jobs=1))
        p_values.append(ckm.compare(*sketches).p_value)
    assert 14 <= (np.array(p_values) < 0.05).sum() <= 48


# Changes


def test_a_shifted_column_is_named(first: ckm.Sketch) -> None:
    found = ckm.compare(first, ckm.sketch(rows(3000, 1, shift=[0, 0.3, 0]), like=first))
    column = found.columns[0]
    assert found.p_value < (0.01 if first.cells is None else 1e-6)
    assert (column.name, column.index) == ("1", 1)
    assert column.change in ("mean", "centroids")
    assert column.mean_b - column.mean_a == pytest.approx(0.3, abs=0.2)
    assert column.shift_within == pytest.approx(0.3, abs=0.1)
    low, high = column.shift_interval
    assert low < column.shift < high


def test_a_scaled_column_is_named(first: ckm.Sketch) -> None:
    X = rows(3000, 1)
    X[:, 2] *= 1.25
    found = ckm.compare(first, ckm.sketch(X, like=first))
    assert found.p_value < 1e-6
    assert found.columns[0].index == 2
    assert found.columns[0].variance_ratio == pytest.approx(1.25**2, rel=0.1)


def test_wider_clusters_are_named_though_the_column_hardly_changes() -> None:
    X = rows(3000, 1)
    rng = np.random.default_rng(2)
    X[:, 0] += rng.normal(size=3000) * 0.7
    column = ckm.compare(FIRST, like_first(X)).columns[0]
    assert (column.index, column.change) == (0, "widths")
    assert column.variance_ratio_within == pytest.approx(1.49, rel=0.15)
    assert column.variance_ratio == pytest.approx(1, abs=0.2)


def test_a_change_of_shape_alone_is_seen_in_the_distribution_of_its_column() -> None:
    rng = np.random.default_rng(3)
    first = ckm.sketch(rng.normal(size=(5000, 2)), n_clusters=5, random_state=0)
    X = rng.normal(size=(5000, 2))
    X[:, 1] = rng.choice([-0.9, 0.9], size=5000) + np.sqrt(1 - 0.81) * rng.normal(size=5000)
    found = ckm.compare(first, ckm.sketch(X, like=first))
    assert found.p_value < 1e-6
    assert found.columns[0].index == 1
    assert found.columns[0].distance is not None
    assert found.columns[0].distance > 0.05


def test_a_changed_share_is_found_with_its_interval(first: ckm.Sketch) -> None:
    shares = [0.15, 0.25, 0.25, 0.35]
    found = ckm.compare(first, ckm.sketch(rows(3000, 1, shares), like=first), n_clusters=K)
    assert found.p_value < 1e-6
    changed = {}
    for cluster in found.clusters:
        k = int(np.argmin(((cluster.centroid_a - MEANS) ** 2).sum(axis=1)))
        low, high = cluster.share_interval
        assert low - 0.01 <= shares[k] - 0.25 <= high + 0.01
        changed[k] = cluster
    assert len(changed) == K
    assert {found.clusters[0], found.clusters[1]} == {changed[0], changed[3]}
    assert found.clusters[0].change == "share"


def test_a_moved_cluster_is_found(first: ckm.Sketch) -> None:
    rng = np.random.default_rng(4)
    labels = rng.choice(K, size=3000)
    X = MEANS[labels] + rng.normal(size=(3000, 3))
    X[labels == 2] += [0, 0, 0.6]
    found = ckm.compare(first, ckm.sketch(X, like=first), n_clusters=K)
    cluster = found.clusters[0]
    assert (cluster.change, cluster.column) == ("centroid", "2")
    np.testing.assert_allclose(cluster.centroid_a, MEANS[2], atol=0.3)
    np.testing.assert_allclose(cluster.centroid_b, MEANS[2] + [0, 0, 0.6], atol=0.3)
    assert cluster.shift == pytest.approx(0.6, abs=0.25)


def test_the_effect_does_not_grow_with_the_number_of_rows() -> None:
    found = []
    for count in (1000, 16_000):
        a = like_first(rows(count, 10))
        found.append(ckm.compare(a, like_first(rows(count, 11, shift=[0.3, 0, 0]))))
    few, many = found
    assert many.p_value < few.p_value
    assert few.effect_interval[0] <= many.effect <= few.effect_interval[1]
    assert many.effect == pytest.approx(few.effect, rel=0.3)
    width = np.diff([few.effect_interval, many.effect_interval])[:, 0]
    assert width[1] < width[0] / 2


# Laws


def test_the_order_of_the_sketches_only_changes_signs() -> None:
    second = like_first(rows(2000, 1, shift=[0.2, 0, 0]))
    there = ckm.compare(FIRST, second)
    back = ckm.compare(second, FIRST)
    assert there.p_value == pytest.approx(back.p_value, rel=1e-6)
    assert there.effect == pytest.approx(back.effect)
    assert there.columns[0].shift == pytest.approx(-back.columns[0].shift)
    assert there.columns[0].variance_ratio == pytest.approx(1 / back.columns[0].variance_ratio)


def test_scaling_all_weights_changes_nothing() -> None:
    second = like_first(rows(2000, 1, shift=[0.1, 0, 0]))
    plain = ckm.compare(FIRST, second)
    assert FIRST.scaled(1e-6).count == 1
    for a, b in ((FIRST.scaled(0.25), second), (FIRST.scaled(1e-6), second.scaled(0.25))):
        assert ckm.compare(a, b).p_value == pytest.approx(plain.p_value, rel=1e-6)
        assert ckm.compare(a, b).effect == pytest.approx(plain.effect)


def test_unequal_weights_count_as_fewer_rows() -> None:
    weights = np.random.default_rng(6).exponential(size=3000)
    found = ckm.compare(FIRST, like_first(rows(3000, 1), sample_weight=weights))
    assert found.size_b == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.p_value > 0.01
    # A tenth of the rows with nearly all the weight: chance is that of a tenth of the rows.
    few = np.where(np.arange(3000) < 300, 1.0, 1e-6)
    assert ckm.compare(FIRST, like_first(rows(3000, 1), sample_weight=few)).size_b == pytest.approx(
        300, rel=0.01
    )


def test_what_was_subtracted_is_not_compared() -> None:
    whole = FIRST + SAME
    direct = ckm.compare(FIRST, SAME)
    assert ckm.compare(FIRST, whole - FIRST).p_value == pytest.approx(direct.p_value, rel=1e-6)


def test_saved_sketches_compare_the_same() -> None:
    weights = np.random.default_rng(7).uniform(0.5, 2, size=1000)
    second = like_first(rows(1000, 1), sample_weight=weights)
    found = ckm.compare(deserialise(serialise(FIRST)), deserialise(serialise(second)))
    assert found.p_value == ckm.compare(FIRST, second).p_value


@pytest.mark.parametrize("distribution", ["adapted-radius", "gaussian", "structured"])
def test_every_kind_of_frequencies_is_compared(distribution: str) -> None:
    a = ckm.sketch(rows(2000, 0), sketch_size=60, distribution=distribution, random_state=0)
    assert ckm.compare(a, ckm.sketch(rows(2000, 1), like=a)).p_value > 0.01
    assert ckm.compare(a, ckm.sketch(rows(2000, 1, shift=[0, 0, 0.5]), like=a)).p_value < 1e-6


def test_columns_have_their_names_and_units() -> None:
    X = pd.DataFrame(rows(3000, 0) * [1, 100, 1], columns=["age", "income", "<b>"])
    a = ckm.sketch(X, n_clusters=K, standardize=True, random_state=0)
    Y = pd.DataFrame(rows(3000, 1) * [1, 100, 1] + [0, 30, 0], columns=X.columns)
    found = ckm.compare(a, ckm.sketch(Y, like=a))
    assert found.columns[0].name == "income"
    assert found.columns[0].mean_b == pytest.approx(Y["income"].mean())
    assert "income" in str(found)
    assert "&lt;b&gt;" in found._repr_html_()
    assert "<b>" not in found._repr_html_()


def test_wide_rows_are_compared_in_their_own_columns() -> None:
    rng = np.random.default_rng(8)
    centres = rng.normal(size=(3, 80)) * 3
    X, Y = (centres[rng.integers(3, size=1500)] + rng.normal(size=(1500, 80)) for _ in range(2))
    a = ckm.sketch(X, n_clusters=3, random_state=0)
    assert a.frequencies.projection is not None
    assert ckm.compare(a, ckm.sketch(Y, like=a)).p_value > 0.01
    Y[:, 17] += 1.5
    found = ckm.compare(a, ckm.sketch(Y, like=a))
    assert found.columns[0].index == 17
    assert found.p_value < 1e-3
    assert len(found.columns) == 80
    assert found.p_variances is None
    assert found.clusters[0].centroid_b.shape == (80,)


def test_one_column_and_one_cluster() -> None:
    rng = np.random.default_rng(9)
    a = ckm.sketch(rng.normal(size=(500, 1)), n_clusters=1, random_state=0)
    assert ckm.compare(a, ckm.sketch(rng.normal(size=(500, 1)), like=a)).p_value > 0.01
    assert ckm.compare(a, ckm.sketch(rng.normal(size=(500, 1)) + 1, like=a)).p_value < 1e-6


def test_constant_columns_are_equal_or_not() -> None:
    X = rows(1000, 0)
    Y = rows(1000, 1)
    X[:, 1] = 5.0
    Y[:, 1] = 5.0
    a = ckm.sketch(X, n_clusters=K, random_state=0)
    same = ckm.compare(a, ckm.sketch(Y, like=a))
    by_index = {column.index: column for column in same.columns}
    assert (by_index[1].shift, by_index[1].variance_ratio, by_index[1].p_value) == (0, 1, 1)
    assert same.p_value > 0.01
    Y[:, 1] = 6.0
    other = ckm.compare(a, ckm.sketch(Y, like=a))
    assert other.columns[0].index == 1
    assert other.columns[0].p_value == 0
    assert other.p_value < 1e-6


# Refusals


def test_other_frequencies_are_refused() -> None:
    other = ckm.sketch(rows(100, 0), n_clusters=K, random_state=1)
    with pytest.raises(MismatchError, match="different frequencies"):
        ckm.compare(FIRST, other)


def test_weighted_rows_of_earlier_files_are_refused() -> None:
    s = like_first(rows(100, 0), sample_weight=np.full(100, 1.5))
    old = deserialise(serialise(s, 3))
    with pytest.raises(DataError, match=r"second sketch holds weighted rows and not the sum of"):
        ckm.compare(FIRST, old)


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_rows_are_refused(count: int) -> None:
    with pytest.raises(DataError, match=rf"first sketch has {count} rows that count as {count}"):
        ckm.compare(like_first(rows(5, 0)[:count]) if count else _empty(), FIRST)


def _empty() -> ckm.Sketch:
    return ckm.Sketch.empty(FIRST.frequencies)


def test_one_heavy_row_is_refused() -> None:
    s = like_first(rows(3, 0), sample_weight=np.array([1.0, 1e-9, 1e-9]))
    with pytest.raises(DataError, match="has 3 rows that count as 1:"):
        ckm.compare(FIRST, s)


@pytest.mark.parametrize("other", ["b.ckm", None, np.eye(3)])
def test_other_things_are_refused(other: Any) -> None:
    with pytest.raises(ParameterError, match="compare takes two sketches; the second is"):
        ckm.compare(FIRST, other)


@pytest.mark.parametrize("n_clusters", [0, -1, 2.5, "3", 10_000])
def test_impossible_numbers_of_clusters_are_refused(n_clusters: Any) -> None:
    with pytest.raises(ParameterError):
        ckm.compare(FIRST, SAME, n_clusters=n_clusters)


# What is said


def test_cells_of_one_sketch_only_are_not_used() -> None:
    found = ckm.compare(FIRST, SAME.without_cells())
    assert found.notes[0].startswith("Cells are not used")
    assert found.p_value == ckm.compare(FIRST.without_cells(), SAME.without_cells()).p_value
    assert found.columns[0].distance is None


def test_few_rows_are_mentioned() -> None:
    assert "Below 50 rows" in ckm.compare(FIRST, like_first(rows(40, 2))).notes[-1]


def test_a_comparison_is_frozen_and_shows_itself() -> None:
    found = ckm.compare(FIRST, like_first(rows(3000, 1, shift=[0.3, 0, 0])))
    with pytest.raises(FrozenInstanceError):
        found.p_value = 1.0  # type: ignore[misc]
    assert str(found).startswith("Different: p = ")
    assert "column 0" in str(found)
    assert "cluster" in str(found)
    assert repr(found).startswith("Comparison(p_value=")
    assert "\n" not in repr(found)
    assert "<table>" in found._repr_html_()


def test_a_plot_has_a_line_for_every_column_and_cluster(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    X = pd.DataFrame(rows(2000, 0), columns=["a", "$x$", "c"])
    first = ckm.sketch(X, n_clusters=K, random_state=0)
    second = ckm.sketch(X.assign(**{"$x$": X["$x$"] + 0.5}), like=first)
    columns, clusters = ckm.compare(first, second).plot(tmp_path / "plot.png").axes
    assert columns.get_yticklabels()[0].get_text() == r"\$x\$"
    assert len(columns.get_yticks()) == 3
    assert len(clusters.get_yticks()) == K
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_combined_p_values_of_independent_tests_are_uniform() -> None:
    rng = np.random.default_rng(11)
    weights = (0.7, 0.15, 0.05, 0.1)
    found = np.array(
        [combine(list(zip(p, weights, strict=True))) for p in rng.uniform(size=(20_000, 4))]
    )
    for level in (0.01, 0.05):
        assert (found < level).mean() == pytest.approx(level, rel=0.15)
    assert combine([(0.0, 0.5), (1.0, 0.5)]) < 1e-290
