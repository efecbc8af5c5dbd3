"""Messages carry the arguments they name as data, also through errors and pickles."""

import pickle

import pytest

from ckm._messages import NO_VALUE, Argument, Aside, Expression, Message
from ckm.errors import CkmError, NonFiniteError, ParameterError

MESSAGE = Message(
    "Sketch with ",
    Argument("sketch_size", 500),
    Aside(" (n_samples=3)"),
    " or ",
    Argument("like", Expression("first")),
    ".",
)


def option(argument: Argument) -> str:
    value = "" if argument.value is NO_VALUE else f" {argument.value}"
    return f"--{argument.name.replace('_', '-')}{value}"


def test_a_message_is_a_string_that_can_be_worded_otherwise() -> None:
    assert MESSAGE == "Sketch with sketch_size=500 (n_samples=3) or like=first."
    assert MESSAGE.worded(option) == "Sketch with --sketch-size 500 or --like first."


def test_messages_can_be_nested() -> None:
    nested = Message("Error: ", MESSAGE)
    assert nested == f"Error: {MESSAGE}"
    assert nested.worded(option) == "Error: Sketch with --sketch-size 500 or --like first."


@pytest.mark.parametrize("kind", [CkmError, ParameterError])
def test_errors_keep_their_message(kind: type[CkmError]) -> None:
    error = pickle.loads(pickle.dumps(kind("Wrong: ", MESSAGE)))
    assert str(error) == f"Wrong: {MESSAGE}"
    assert error.message.worded(option) == f"Wrong: {MESSAGE.worded(option)}"


def test_an_argument_without_a_value_stays_so_through_pickles() -> None:
    argument = pickle.loads(pickle.dumps(Argument("n_clusters")))
    assert str(argument) == "n_clusters"
    assert argument.value is NO_VALUE


def test_the_remedy_for_missing_values_names_the_option() -> None:
    error = pickle.loads(pickle.dumps(NonFiniteError(2, 0, float("nan"), "a", "x.csv")))
    assert "nan='drop' (of ckm.sketch, CompressiveKMeans and Solution.predict)" in str(error)
    assert error.message.worded(option).endswith("first, or use --nan drop.")
    assert error.place() == "Row 2, column 'a' of x.csv"
