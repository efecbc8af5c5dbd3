"""scikit-learn's callbacks around the stages of a fit, where the installed scikit-learn has them (1.9 and later)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # nothing to call
    _Method = TypeVar("_Method", bound=Callable[..., Any])

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """In place of scikit-learn's."""

    def with_callbacks(method: _Method) -> _Method:
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "begin_fit", "stage", "with_callbacks"]

_STAGES = 3


@contextmanager
def begin_fit(estimator: Any) -> Iterator[Any]:
    """Around a whole fit, inside a method `with_callbacks`: what its stages belong to, or None."""
    if not hasattr(estimator, "_init_callback_context"):
        yield None
        return
    context = estimator._init_callback_context(max_subtasks=_STAGES)
    context.call_on_fit_task_begin(estimator=estimator)
    yield context
    context.call_on_fit_task_end(estimator=estimator)


@contextmanager
def stage(context: Any, estimator: Any, name: str) -> Iterator[None]:
    """Around one stage: "sketch", "decode" or "label"."""
    if context is None:
        yield
        return
    inner = context.subcontext(task_name=name)
    inner.call_on_fit_task_begin(estimator=estimator)
    yield
    inner.call_on_fit_task_end(estimator=estimator)
