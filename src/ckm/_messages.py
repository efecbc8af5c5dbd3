"""Messages that carry the arguments they name as data.

The library writes `sketch_size=500` where the command line writes `--sketch-size 500`. A message is
made of pieces of text and of `Argument`s: `str(message)` words them for Python, and
`message.worded(...)` in any other way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class _NoValue:
    """Stands for "no value is named"; there is one of it, also after pickling."""

    def __reduce__(self) -> str:
        return "NO_VALUE"

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE = _NoValue()


class Expression(str):
    """Python code as the value of an argument: worded without quotes, as in `like=first`."""

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
        The value that the message speaks of. `...` means "some value", worded `name=`.
    function : str, optional
        The function that takes it, where not every reader of the message has called that one.

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
    """Words for readers of Python only, such as "(n_samples=3)", which scikit-learn looks for."""

    text: str

    def __str__(self) -> str:
        return self.text


Piece = str | Argument | Aside


class Message(str):
    """Text that remembers the pieces it was made of.

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
        """Join pieces; the pieces of a message among them are taken one by one."""
        flat: list[Piece] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Message) else [part])
        made = super().__new__(cls, "".join(map(str, flat)))
        made.parts = tuple(flat)
        return made

    def __reduce__(self) -> tuple[type["Message"], tuple[Piece, ...]]:
        return Message, self.parts

    def worded(self, word: Callable[[Argument], str]) -> str:
        """The same text with each argument in the words of `word`, and without asides."""
        return "".join(
            word(part) if isinstance(part, Argument) else part
            for part in self.parts
            if not isinstance(part, Aside)
        )
