"""Tables at a terminal, CSV in a pipe, plain values for JSON."""

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import ckm
from ckm._display import tables
from ckm._kmeans.assign import Labelling


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def at_terminal(show: Callable[[Any], None], value: Any) -> str:
    """Return what is shown if standard output is a terminal of 200 columns."""
    with redirect_stdout(Terminal()) as output, pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "200")
        show(value)
    return output.getvalue()


def solve(X: np.ndarray, **options: object) -> ckm.Solution:
    return ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0, **options), 3, random_state=0)


@pytest.fixture(scope="module")
def wide() -> np.ndarray:
    """More columns than a terminal shows."""
    return np.random.default_rng(0).normal(size=(200, 60))


def test_centroids_are_csv_in_full_precision_in_a_pipe(
    clusters: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    solution = solve(clusters)
    tables.show_solution(solution)
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
    assert header == ["cluster", "weight", "[0]", "[1]"]
    values = np.array(rows, float)
    np.testing.assert_array_equal(values[:, 1], solution.weights)
    np.testing.assert_array_equal(values[:, 2:], solution.centroids)


def test_centroids_are_a_rounded_table_at_a_terminal(clusters: np.ndarray) -> None:
    solution = solve(clusters)
    text = at_terminal(tables.show_solution, solution)
    assert "cluster" in text
    for weight, centroid in zip(solution.weights, solution.centroids, strict=True):
        assert f"{weight:.4f}" in text
        assert all(f"{x:.4g}" in text for x in centroid)


@pytest.mark.filterwarnings("ignore::ckm.errors.ClustersWarning")
def test_a_terminal_shows_the_first_coordinates_and_says_so(wide: np.ndarray) -> None:
    s = ckm.sketch(wide, sketch_size=400, random_state=0)
    text = at_terminal(tables.show_solution, ckm.decode(s, 2, random_state=0))
    assert "40 of 60 columns; -o centroids.csv writes them all" in text
    text = at_terminal(tables.show_sketch, s)
    assert "40 of 60 columns; --json shows them all" in text


def test_labels_are_counted_per_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    labelling = Labelling(np.array([3, 1]), np.array([3.0, 1.0]), np.array([0.5, 2.0]))
    assert "75.00%" in at_terminal(tables.show_labelling, labelling)
    tables.show_labelling(labelling)
    assert capsys.readouterr().out == "cluster,rows,sse\n0,3,0.5\n1,1,2.0\n"
    assert tables.labelling_record(labelling) == {
        "rows": 4,
        "sse": 2.5,
        "counts": [3, 1],
        "cluster_sse": [0.5, 2.0],
        "missing": 0,
    }


def test_a_sketch_is_plain_values_for_json(clusters: np.ndarray) -> None:
    record = tables.sketch_record(ckm.sketch(clusters, n_clusters=3, random_state=0))
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["rows"] == len(clusters)
    np.testing.assert_allclose(record["std"], clusters.std(axis=0))


def test_column_names_are_printed_literally(
    clusters: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    frame = pd.DataFrame(clusters, columns=["[red]east", ":smile:"])
    tables.show_sketch(ckm.sketch(frame, n_clusters=3, random_state=0))
    out = capsys.readouterr().out
    assert "[red]east" in out
    assert ":smile:" in out


def test_control_characters_in_names_are_shown_escaped() -> None:
    names = ("\x1b[31mred", "\x9b2J", "\u202eright", "two\nlines")
    rows = np.random.default_rng(0).normal(size=(50, len(names)))
    s = ckm.sketch(rows, n_clusters=1, random_state=0)
    s = dataclasses.replace(s, columns=names)
    solution = dataclasses.replace(ckm.decode(s, 1, random_state=0), columns=names)
    for show, value in ((tables.show_sketch, s), (tables.show_solution, solution)):
        text = at_terminal(show, value)
        for name in names:
            assert name not in text
            assert name.encode("unicode_escape").decode() in text


def test_a_table_fits_the_terminal_and_keeps_its_numbers(wide: np.ndarray) -> None:
    """Wide tables are transposed; where that does not help, they come in pieces."""
    solution = solve(wide * 1e-12)
    for K, width in ((3, 80), (3, 40), (3, 24)):
        lines = solution.summary().text(width).split("\n\n")[1:-1]
        text = "\n".join(lines)
        assert max(map(len, text.splitlines())) <= width, (K, width)
        for x in solution.centroids[:, :40].ravel():
            assert f"{x:.4g}" in text
