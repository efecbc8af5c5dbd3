"""scikit-learn's callbacks around the stages of a fit, and attributes that only `fit` sets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sklearn.exceptions import NotFittedError

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks
    _Method = TypeVar("_Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's class."""

    def with_callbacks(method: _Method) -> _Method:
        """Return the method unchanged."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "FittedAttribute",
    "callback_stage",
    "fit_callbacks",
    "with_callbacks",
]

_FIT_STAGES = 3


@contextmanager
def fit_callbacks(estimator: Any) -> Iterator[Any]:
    """Around a whole fit, inside a method `with_callbacks`: yields the context of its stages, or
    None without callbacks.
    """
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    context = estimator._init_callback_context(max_subtasks=_FIT_STAGES)
    with _fit_task(context, estimator):
        yield context


@contextmanager
def callback_stage(context: Any, estimator: Any, name: str) -> Iterator[None]:
    """Around one stage of a fit: "sketch", "decode" or "label"."""
    if context is None:
        yield
        return
    with _fit_task(context.subcontext(task_name=name), estimator):
        yield


@contextmanager
def _fit_task(context: Any, estimator: Any) -> Iterator[None]:
    """Call the callbacks at the beginning of a task, and at its end unless it failed."""
    context.call_on_fit_task_begin(estimator=estimator)
    yield
    context.call_on_fit_task_end(estimator=estimator)


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
