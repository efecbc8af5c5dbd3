"""`ckm mixture`: a mixture from a file of a sketch."""

import json

import numpy as np
import pytest
from command import run

import ckm


@pytest.fixture(scope="module")
def sketch_file(tmp_path_factory: pytest.TempPathFactory):
    X = ckm.datasets.gaussian_mixture(20_000, 3, 2, separation=20, random_state=1).rows
    path = tmp_path_factory.mktemp("mixture") / "data.ckm"
    ckm.sketch(X, n_clusters=3, sketch_size=75, random_state=0).save(path)
    return path


def test_it_prints_a_table(sketch_file) -> None:
    out, err = run("mixture", sketch_file, "-k", 3)
    assert "3 Gaussians with diagonal covariances, from 20,000 rows" in out
    assert "Warning" not in err


@pytest.mark.parametrize(
    ("covariance_type", "shape"),
    [("diag", (3, 2)), ("full", (3, 2, 2)), ("tied", (2, 2)), ("spherical", (3,))],
)
def test_json_has_the_mixture(sketch_file, covariance_type: str, shape: tuple[int, ...]) -> None:
    out, _ = run("mixture", sketch_file, "-k", 3, "--covariance-type", covariance_type, "--json")
    record = json.loads(out)
    expected = ckm.fit_mixture(ckm.load(sketch_file), 3, covariance_type, random_state=0)
    assert np.shape(record["covariances"]) == shape
    np.testing.assert_array_equal(record["means"], expected.means)
    np.testing.assert_array_equal(record["covariances"], expected.covariances)
    assert record["rows"] == 20_000
    assert record["status"] == "ok"


def test_it_writes_a_file(sketch_file, tmp_path) -> None:
    out, err = run("mixture", sketch_file, "-k", 3, "-o", tmp_path / "mixture.json")
    assert out == ""
    assert "Found 3 Gaussians" in err
    assert len(json.loads((tmp_path / "mixture.json").read_text())["weights"]) == 3


def test_the_number_may_be_auto(sketch_file) -> None:
    out, _ = run("mixture", sketch_file, "-k", "auto", "--max-components", 5, "--json")
    assert json.loads(out)["n_components"] == 3


def test_wrong_usage_is_one_line(sketch_file, tmp_path) -> None:
    for wrong in (
        ("-k", "many"),
        ("-k", 0),
        ("-k", 3, "--covariance-type", "round"),
        ("-k", 3, "--reg-covar", -1),
        ("-k", 3, "-o", tmp_path / "mixture.csv"),
    ):
        run("mixture", sketch_file, *wrong, expect=2)
    _, err = run("mixture", sketch_file, "-k", 200, expect=1)
    assert "--sketch-size 4000" in err


def test_a_small_sketch_warns_in_options(sketch_file, tmp_path) -> None:
    X = ckm.datasets.gaussian_mixture(5000, 3, 2, separation=20, random_state=1).rows
    ckm.sketch(X, sketch_size=20, cells=0, random_state=0).save(tmp_path / "small.ckm")
    _, err = run("mixture", tmp_path / "small.ckm", "-k", 3)
    assert "--sketch-size 60" in err
    assert "--covariance-type" in err
