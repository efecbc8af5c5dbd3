"""Values of options that are more than one word or number."""

import csv
import io
import math
from typing import Any

import typer

from ckm._cli.errors import usage_errors
from ckm._core.categories import MAX_LEVELS, ONEHOT, Categories, as_categories


def parse_projection(text: str) -> int | str | None:
    """Return the number of axes, "auto", or None."""
    if text in ("auto", "none"):
        return text if text == "auto" else None
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"It must be auto, none or a whole number from 1 on; got {text!r}.",
        param_hint="--projection",
    )


def parse_cells(text: str) -> int | str:
    """Return the number of cells, or "auto"."""
    if text == "auto" or text.isdecimal():
        return text if text == "auto" else int(text)
    raise typer.BadParameter(
        f"It must be auto or a whole number from 0 on; got {text!r}.", param_hint="--cells"
    )


def parse_scale(text: str) -> float | str:
    """Return "auto" or a positive number."""
    if text == "auto":
        return text
    try:
        scale = float(text)
    except ValueError:
        scale = math.nan
    if not 0 < scale < math.inf:
        raise typer.BadParameter(
            f"{text!r} is neither 'auto' nor a positive variance.", param_hint="--scale"
        )
    return scale


def split_names(names: str | None, option: str = "--columns") -> list[str] | None:
    """Split comma-separated names; quotes protect a comma inside a name."""
    if names is None:
        return None
    try:
        lines = list(csv.reader(io.StringIO(names, newline=""), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise typer.BadParameter(
            f"{names!r} is not a line of CSV ({error}); put a name with a comma or quotes in "
            "double quotes, and quotes in it twice.",
            param_hint=option,
        ) from None
    if len(lines) != 1:
        raise typer.BadParameter(
            f"{names!r} is not one line of names, as in A,B,C.", param_hint=option
        )
    return lines[0]


def parse_categories(text: str | None) -> Categories:
    """Return the categories of names that may have a coding and a weight, as in
    ``plan,city=frequency,country=2,street=frequency:2``.
    """
    asked: dict[str, Any] = {}
    for item in split_names(text, "--categories") or ():
        name, _, words = item.rpartition("=")
        coding, _, weight = words.rpartition(":")
        parts = [part for part in (coding, weight) if part]
        is_coded = bool(name) and all(part in MAX_LEVELS or _is_number(part) for part in parts)
        if (name if is_coded else item) in asked:
            raise typer.BadParameter(f"{item!r} is named twice.", param_hint="--categories")
        if is_coded:
            asked[name] = [part if part in MAX_LEVELS else float(part) for part in parts]
        else:
            asked[item] = ONEHOT
    with usage_errors("--categories"):
        return as_categories(asked)


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False
