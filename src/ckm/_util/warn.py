"""Warnings that point at the line of the user's code that called the library."""

import sys
import warnings

# Packages whose frames are skipped: scikit-learn calls the methods of the estimator for the user.
_SKIPPED_PACKAGES = ("ckm", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn as from the line that called into the library.

    Python shows the same message once per such line. A `Message` keeps its arguments as data.
    """
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and _package(frame.f_globals) in _SKIPPED_PACKAGES:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    """The top-level package of a module, given its global names."""
    return str(names.get("__name__")).split(".")[0]
