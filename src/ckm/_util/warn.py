"""Warnings that point at the caller's own line, however deep below it they are found."""

import sys
import warnings

_OURS = ("ckm", "sklearn")  # which calls the estimator's methods on behalf of a person


def warn_user(sentence: str, category: type[Warning]) -> None:
    """Warn, as from the line that called into the library: the same sentence is shown once for each
    such line.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] in _OURS:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)
