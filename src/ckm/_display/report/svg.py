"""SVG as text: elements, scales and axes. Colours and fonts come from the page's style sheet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ckm._util.arrays import FloatArray
from ckm._util.text import visible

# About so many marks on an axis.
_TICKS = 5


def text_of(value: object) -> str:
    """Text as HTML, with control characters made visible."""
    return escape(visible(str(value)))


def element(name: str, content: str = "", **attributes: Any) -> str:
    """An element; underscores in the names of attributes stand for hyphens.

    >>> element("circle", r=2, class_="dot", stroke_width=1)
    '<circle r="2" class="dot" stroke-width="1"/>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>"


def _attribute(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float | np.floating) else escape(str(value))


def picture(width: int, height: int, label: str, content: str) -> str:
    """An SVG image that a screen reader announces by its label."""
    title = element("title", text_of(label))
    return element(
        "svg", title + content, viewBox=f"0 0 {width} {height}", role="img", aria_label=label
    )


def label(x: float, y: float, words: object, kind: str = "tick", anchor: str = "middle") -> str:
    """A piece of text."""
    return element("text", text_of(words), x=x, y=y, class_=kind, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def outline(points: FloatArray, is_closed: bool = False) -> str:
    """The path through points (p, 2)."""
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f"M{steps}{'Z' if is_closed else ''}"


@dataclass(frozen=True)
class Scale:
    """Maps numbers from `low` to `high` to positions from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Any) -> Any:
        span = self.high - self.low or 1.0
        return self.start + (np.asarray(value) - self.low) / span * (self.end - self.start)

    def ticks(self, most: int = _TICKS) -> list[float]:
        """Round numbers within the scale, at most about so many.

        >>> Scale(0.0, 9.3, 0.0, 1.0).ticks()
        [0.0, 2.0, 4.0, 6.0, 8.0]
        """
        span = self.high - self.low
        if not (math.isfinite(span) and span > 0):
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(s * power for s in (1, 2, 5, 10) if span / (s * power) <= most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(i * step, 12) for i in range(first, last + 1)]


def numbers(values: Sequence[float]) -> list[str]:
    """Marks of an axis in as few characters as tell them apart.

    >>> numbers([0.0, 2500.0, 5000.0]), numbers([0.0, 0.1]), numbers([0.0, 2e9])
    (['0', '2,500', '5,000'], ['0', '0.1'], ['0', '2e+09'])
    """
    return [short(value) for value in values]


def short(value: float) -> str:
    """A number in at most about seven characters; its exponent is never cut."""
    if not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        return f"{value:.3g}"
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def x_axis(scale: Scale, y: float, marks: Sequence[float] | None = None) -> str:
    """Marks below a horizontal line at y."""
    values = scale.ticks() if marks is None else list(marks)
    parts = [line(scale.start, y, scale.end, y, "axis")]
    for value, words in zip(values, numbers(values), strict=True):
        parts.append(label(float(scale(value)), y + 16, words))
    return "".join(parts)


def y_axis(scale: Scale, x: float, right: float, suffix: str = "") -> str:
    """Marks left of x, with lines across to `right`."""
    values = scale.ticks(4)
    parts = []
    for value, words in zip(values, numbers(values), strict=True):
        y = float(scale(value))
        parts.append(line(x, y, right, y, "grid"))
        parts.append(label(x - 6, y + 4, words + suffix, anchor="end"))
    return "".join(parts)
