"""Marginals, drawn rows and densities agree with the data that a sketch summarises."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import ks_2samp

import ckm
from ckm._decoding.row_measure import cumulative

NAMES = ("east", "north", "height")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    centres = np.array([[0.0, 0.0, 3.0], [8.0, 2.0, 0.0], [3.0, 9.0, -4.0]])
    which = rng.choice(3, size=6000, p=[0.5, 0.3, 0.2])
    return centres[which] + rng.normal(size=(6000, 3)) * [1.0, 0.5, 2.0]


def sketch_of(rows, cells, **options):
    return ckm.sketch(rows, n_clusters=6, cells=cells, random_state=0, **options)


def largest_gap(found, rows):
    """The largest distance between the distribution of a column and that of the data."""
    gaps = []
    for i, number in enumerate(found.numbers):
        values = np.sort(rows[:, number])
        exact = (np.arange(len(values)) + 0.5) / len(values)
        own = cumulative(found.distribution.along(np.array([number])), values)
        gaps.append(np.abs(own - exact).max())
        assert found.density[i].min() >= 0
    return max(gaps)


@pytest.mark.parametrize(("cells", "limit"), [("auto", 0.02), (0, 0.03)])
def test_marginals_are_those_of_the_data(rows, cells, limit):
    found = ckm.marginals(sketch_of(rows, cells), random_state=0)
    assert largest_gap(found, rows) < limit
    areas = trapezoid(found.density, found.grid, axis=1)
    assert np.allclose(areas, 1, atol=0.03)
    quantiles = found.quantiles([0.1, 0.5, 0.9])
    exact = np.quantile(rows, [0.1, 0.5, 0.9], axis=0).T
    assert np.abs(quantiles - exact).max() < 0.1 * rows.std(axis=0).max()


def test_a_pair_of_columns_has_their_correlation(rows):
    found = ckm.marginals(sketch_of(rows, "auto"), random_state=0)
    (x, y), density = found.pair(0, 1)
    mass = density / density.sum()
    means = mass.sum(axis=1) @ x, mass.sum(axis=0) @ y
    covariance = (x - means[0]) @ mass @ (y - means[1])
    assert covariance == pytest.approx(np.cov(rows[:, 0], rows[:, 1])[0, 1], rel=0.05)


@pytest.mark.parametrize("cells", ["auto", 0])
def test_drawn_rows_resemble_the_data(rows, cells):
    solution = ckm.decode(sketch_of(rows, cells), 6, random_state=0)
    drawn = solution.sample(6000, random_state=1)
    assert np.array_equal(drawn, solution.sample(6000, random_state=1))
    assert not np.array_equal(drawn, solution.sample(6000, random_state=2))
    for column in range(3):
        assert ks_2samp(drawn[:, column], rows[:, column]).statistic < 0.05
    assert np.abs(np.corrcoef(drawn.T) - np.corrcoef(rows.T)).max() < 0.05


def test_density_integrates_to_one_and_is_that_of_the_rows(rows):
    plane = rows[:, :2]
    solution = ckm.decode(sketch_of(plane, "auto"), 6, random_state=0)
    x = np.linspace(-6, 12, 181)
    y = np.linspace(-4, 13, 171)
    points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    density = solution.density(points)
    assert density.sum() * 0.01 == pytest.approx(1, abs=0.02)
    assert np.allclose(np.log(density), solution.density(points, log=True))
    near = (np.abs(plane - [0, 0]) < 0.5).all(axis=1).mean()
    inside = (np.abs(points - [0, 0]) < 0.5).all(axis=1)
    assert density[inside].mean() == pytest.approx(near, rel=0.2)


def test_rows_that_are_projected_keep_the_variance_of_every_column():
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(5, 80))
    X = centres[rng.integers(5, size=3000)] + rng.normal(size=(3000, 80))
    s = ckm.sketch(X, n_clusters=5, random_state=0)
    assert s.frequencies.projection is not None
    drawn = ckm.decode(s, 5, random_state=0).sample(3000, random_state=0)
    assert np.abs(drawn.mean(axis=0) - X.mean(axis=0)).max() < 0.5
    assert np.allclose(drawn.std(axis=0), X.std(axis=0), rtol=0.15)
    found = ckm.marginals(s, [0, 40], random_state=0)
    assert largest_gap(found, X) < 0.1


def test_columns_by_name_and_by_number(rows):
    s = ckm.sketch(dict_of(rows), n_clusters=4, random_state=0)
    found = ckm.marginals(s, ["height", 0], random_state=0)
    assert found.columns == ("height", "east")
    assert found.numbers == (2, 0)
    grid, _ = found.pair("east", "height")
    assert np.array_equal(grid[:, 0], found.grid[[1, 0], 0])
    assert "height" in str(found)
    assert "<table>" in found._repr_html_()


def dict_of(rows):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(rows, columns=list(NAMES))


def test_bad_arguments_say_what_was_seen(rows):
    s = sketch_of(rows, "auto")
    with pytest.raises(ckm.errors.ParameterError, match="no column 'width'"):
        ckm.marginals(s, ["width"])
    with pytest.raises(ckm.errors.ParameterError, match="no column 7"):
        ckm.marginals(s, [7])
    found = ckm.marginals(s, random_state=0)
    with pytest.raises(ckm.errors.ParameterError, match="two columns"):
        found.pair(1, 1)
    with pytest.raises(ckm.errors.ParameterError, match="between 0 and 1"):
        found.quantiles([1.5])
    with pytest.raises(ckm.errors.ParameterError, match="marginals takes a Sketch"):
        ckm.marginals(rows)
    with pytest.raises(ckm.errors.DataError, match="zero rows"):
        ckm.marginals(ckm.Sketch.empty(s.frequencies))
    clompr = ckm.decode(s.without_cells(), 3, decoder="clompr", random_state=0)
    with pytest.raises(ckm.errors.ParameterError, match="no distribution"):
        clompr.sample(3)
    solution = ckm.decode(s, 3, random_state=0)
    with pytest.raises(ckm.errors.DataError, match="3 columns"):
        solution.density([[1.0, 2.0]])
    with pytest.raises(ckm.errors.ParameterError, match="n_samples"):
        solution.sample(0)


def test_plots_are_drawn_and_saved(rows, tmp_path):
    pytest.importorskip("matplotlib")
    s = sketch_of(rows, "auto")
    figure = s.plot_marginals(data=rows, path=tmp_path / "columns.png", random_state=0)
    assert len(figure.axes) == 9
    assert (tmp_path / "columns.png").read_bytes()[:4] == b"\x89PNG"
    many = ckm.sketch(np.hstack([rows, rows[:, ::-1]]), n_clusters=3, random_state=0)
    assert len(many.plot_marginals(random_state=0).axes) == 8
