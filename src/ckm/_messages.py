"""Messages that carry the arguments they name as data.

Python users pass `sketch_size=500` where the command line takes `--sketch-size 500`. A message is
a sequence of texts and `Argument`s: as a string it names arguments as Python does, and
`message.worded(...)` names them in any other way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class _NoValue:
    """The type of `NO_VALUE`, which stays a single object when it is pickled."""

    def __reduce__(self) -> str:
        return "NO_VALUE"

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE = _NoValue()


class Expression(str):
    """Python code as the value of an argument: shown without quotes, as in `like=first`."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Argument:
    """An argument of the library, as a message names it.

    Parameters
    ----------
    name : str
        Its name in Python.
    value : object, optional
        The value that the message suggests or reports. `...` stands for any value: `name=`.
    function : str, optional
        The function that takes the argument, if the user may have called another one.

    Examples
    --------
    >>> print(Argument("n_clusters"), Argument("like", ...), Argument("sketch_size", 500))
    n_clusters like= sketch_size=500
    >>> print(Argument("nan", "drop", function="ckm.sketch"))
    ckm.sketch(..., nan='drop')
    >>> print(Argument("like", Expression("first")))
    like=first
    """

    name: str
    value: Any = NO_VALUE
    function: str | None = None

    def __str__(self) -> str:
        if self.value is NO_VALUE:
            return self.name
        given = f"{self.name}=" if self.value is ... else f"{self.name}={self.value!r}"
        return given if self.function is None else f"{self.function}(..., {given})"


@dataclass(frozen=True)
class Aside:
    """Text for Python users only, such as "(n_samples=3)", which scikit-learn's checks look for."""

    text: str

    def __str__(self) -> str:
        return self.text


Piece = str | Argument | Aside


class Message(str):
    """A string that remembers the pieces it was made of.

    Parameters
    ----------
    *parts : str, Argument, Aside or Message
        The pieces, in order. A message contributes its own pieces.

    Examples
    --------
    >>> message = Message("Give ", Argument("like", ...), " or ", Argument("scale", 2.0), ".")
    >>> message
    'Give like= or scale=2.0.'
    >>> message.worded(lambda argument: f"--{argument.name}")
    'Give --like or --scale.'
    """

    parts: tuple[Piece, ...]

    def __new__(cls, *parts: "Piece | Message") -> "Message":
        flat: list[Piece] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Message) else [part])
        message = super().__new__(cls, "".join(map(str, flat)))
        message.parts = tuple(flat)
        return message

    def __reduce__(self) -> tuple[type["Message"], tuple[Piece, ...]]:
        return Message, self.parts

    def worded(self, word: Callable[[Argument], str]) -> str:
        """The text with `word(argument)` in place of each argument, and without asides."""
        return "".join(
            word(part) if isinstance(part, Argument) else part
            for part in self.parts
            if not isinstance(part, Aside)
        )
