"""`FittedAttribute`: what a model has only after `fit`."""

from typing import Any

from sklearn.exceptions import NotFittedError


class FittedAttribute:
    """An attribute of the model that only `fit` sets; without it, an error says what to do instead.

    Parameters
    ----------
    alternative : str
        How to get the value where `fit` has not set it.
    """

    def __init__(self, alternative: str) -> None:
        self._alternative = alternative

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type) -> "FittedAttribute":
        if model is None:
            return self
        if not model.__sklearn_is_fitted__():
            raise NotFittedError(f"This model has no {self._name} before fit; call fit first.")
        raise AttributeError(f"This model has no {self._name}: {self._alternative}.")
