"""The plots of a report, each a piece of SVG."""

import numpy as np

from ckm._analysis.comparison import LEVEL, Comparison
from ckm._analysis.k_curve import KCurve
from ckm._decoding.gaussians import GaussianMeasure
from ckm._decoding.row_measure import log_density
from ckm._decoding.solution import Solution
from ckm._display.report.cluster_map import ClusterMap
from ckm._display.report.palette import color
from ckm._display.report.svg import (
    Scale,
    element,
    label,
    line,
    outline,
    picture,
    short,
    text_of,
    x_axis,
    y_axis,
)
from ckm._util.arrays import BoolArray, FloatArray, IntArray, LabelArray

# Points of a density, and the share of the rows beyond each end of its axis.
_GRID = 90
_TAIL = 0.002
# The map, in units of the image.
_MAP_WIDTH = 560
_MAP_HEIGHT = 430
# Height of an area, in that of all, below which it is not drawn.
_LEAST_AREA = 0.003
# Changes that are drawn.
_MOST_CHANGES = 10


def share_bar(share: float, low: float, high: float, k: int, largest: float) -> str:
    """A share with its interval, relative to the largest; the text beside it says the numbers."""
    scale = Scale(0.0, max(largest, 1e-9), 0.0, 200.0)
    bar = element("rect", x=0, y=3, width=float(scale(share)), height=8, rx=2, fill=color(k))
    ends = float(scale(low)), min(float(scale(high)), 204.0)
    return element(
        "svg",
        bar + line(ends[0], 7, ends[1], 7, "interval"),
        viewBox="0 0 206 14",
        aria_hidden="true",
        class_="bar",
    )


def map_chart(found: ClusterMap, K: int) -> str:
    """Clusters on two principal axes: points, ellipses of two standard deviations, centroids."""
    # Heavy tails would take all the space.
    ends = np.quantile(np.vstack([found.points, found.centroids]), [0.005, 0.995], axis=0)
    ends[0] = np.minimum(ends[0], found.centroids.min(axis=0))
    ends[1] = np.maximum(ends[1], found.centroids.max(axis=0))
    margin = 0.06 * np.maximum(ends[1] - ends[0], 1e-12)
    low_x, low_y = ends[0] - margin
    high_x, high_y = ends[1] + margin
    x = Scale(low_x, high_x, 60, _MAP_WIDTH - 10)
    y = Scale(low_y, high_y, _MAP_HEIGHT - 42, 10)
    is_inside = ((found.points >= ends[0] - margin) & (found.points <= ends[1] + margin)).all(1)
    dots = []
    ellipses = []
    marks = []
    for k in range(K):
        own = found.points[(found.labels == k) & is_inside]
        # One path of short strokes with round ends is a tenth of as many circles.
        steps = "".join(f"M{x(a):.1f} {y(b):.1f}h0" for a, b in own)
        dots.append(element("path", d=steps, class_="dots", stroke=color(k)) if steps else "")
        edge = found.ellipse(k)
        if edge is not None:
            shape = outline(np.stack([x(edge[:, 0]), y(edge[:, 1])], axis=1), True)
            ellipses.append(
                element("path", d=shape, class_="ellipse", fill=color(k), stroke=color(k))
            )
        cx = float(x(found.centroids[k, 0]))
        cy = float(y(found.centroids[k, 1]))
        marks.append(element("circle", cx=cx, cy=cy, r=12, class_="centroid", fill=color(k)))
        marks.append(label(cx, cy + 4.5, k, "number"))
    frame = element("clipPath", element("rect", x=60, y=6, width=490, height=384), id="map-frame")
    drawn = element("g", "".join((*dots, *ellipses)), clip_path="url(#map-frame)")
    axes = x_axis(x, _MAP_HEIGHT - 42) + y_axis(y, 60, _MAP_WIDTH - 10)
    words = f"Map of {K} clusters on the two axes along which rows vary most"
    return picture(
        _MAP_WIDTH, _MAP_HEIGHT, words, frame + axes + drawn + "".join(marks) + _axis_names(found)
    )


def _axis_names(found: ClusterMap) -> str:
    (name, share), *others = found.axes
    parts = [
        label(
            _MAP_WIDTH - 10,
            _MAP_HEIGHT - 6,
            f"{name} → ({share:.0%} of the variance)",
            "name",
            "end",
        )
    ]
    for name, share in others:
        words = f"{name} → ({share:.0%})"
        turned = "rotate(-90 10 14)"
        parts.append(
            element(
                "text",
                text_of(words),
                x=10,
                y=14,
                class_="name",
                text_anchor="end",
                transform=turned,
            )
        )
    return "".join(parts)


def sse_chart(curve: KCurve, K: int) -> str:
    """The share of the variance left within clusters, for each number of them."""
    width = 440
    height = 270
    total = curve.sse[0] if curve.sse[0] > 0 else 1.0
    values = 100 * curve.sse / total
    band = 100 * curve.sse_interval / total
    numbers = curve.n_clusters
    x = Scale(float(numbers[0]), float(max(numbers[-1], numbers[0] + 1)), 46, width - 12)
    y = Scale(0.0, max(100.0, float(np.nanmax(values))), height - 44, 12)
    corners = np.concatenate(
        [
            np.stack([x(numbers), y(np.clip(band[:, 1], 0, 110))], axis=1),
            np.stack([x(numbers), y(np.clip(band[:, 0], 0, 110))], axis=1)[::-1],
        ]
    )
    path = outline(np.stack([x(numbers), y(values)], axis=1))
    parts = [
        y_axis(y, 46, width - 12, " %"),
        x_axis(x, height - 44, _whole(numbers)),
        element("path", d=outline(corners, True), class_="band"),
        _marked(curve, K, x, height - 44),
        element("path", d=path, class_="line"),
        "".join(
            element(
                "circle", cx=float(x(k)), cy=float(y(v)), r=3.2 if k != K else 5.5, class_="point"
            )
            for k, v in zip(numbers, values, strict=True)
        ),
        label((46 + width) / 2, height - 8, "number of clusters", "name"),
    ]
    words = "Variance left within clusters, in per cent, for each number of clusters"
    return picture(width, height, words, "".join(parts))


def stability_chart(curve: KCurve, K: int) -> str:
    """The share of rows that stay in their cluster, for each number of clusters."""
    width = 440
    height = 270
    numbers = curve.n_clusters
    x = Scale(float(numbers[0]) - 0.7, float(numbers[-1]) + 0.7, 46, width - 12)
    y = Scale(0.0, 100.0, height - 44, 12)
    bar = max(2.0, min(14.0, 0.6 * (width - 58) / len(numbers)))
    bars = []
    for k, value in zip(numbers, curve.stability, strict=True):
        if not np.isfinite(value):
            continue
        top = float(y(100 * value))
        kind = "column chosen" if k == K else "column"
        bars.append(
            element(
                "rect",
                x=float(x(k)) - bar / 2,
                y=top,
                width=bar,
                height=height - 44 - top,
                class_=kind,
            )
        )
    parts = [
        y_axis(y, 46, width - 12, " %"),
        "".join(bars),
        x_axis(x, height - 44, _whole(numbers)),
        label((46 + width) / 2, height - 8, "number of clusters", "name"),
    ]
    words = "Share of rows that stay in their cluster, for each number of clusters"
    return picture(width, height, words, "".join(parts))


def _whole(numbers: IntArray) -> list[float]:
    step = max(1, -(-len(numbers) // 10))
    return [float(k) for k in numbers[::step]]


def _marked(curve: KCurve, K: int, x: Scale, bottom: float) -> str:
    """A line at the number of this report, and one at that which the sketch suggests."""
    parts = [line(float(x(K)), 12, float(x(K)), bottom, "mark")]
    if curve.suggestion not in (None, K):
        at = float(x(curve.suggestion))
        parts.append(line(at, 12, at, bottom, "mark other"))
    return "".join(parts)


def density_chart(solution: Solution, column: int, name: str, owners: LabelArray) -> str:
    """The distribution of one column, stacked by cluster; `owners` (q,) are those of Gaussians."""
    width = 300
    height = 130
    assert solution.distribution is not None
    g = solution.distribution.along(np.array([column]))
    deviations = np.sqrt(np.maximum(g.variances[:, 0], 0))
    low, high = _ends(g.shares, g.means[:, 0], deviations)
    grid = np.linspace(low, high, _GRID)
    x = Scale(low, high, 8, width - 8)
    present = np.unique(owners)
    parts = np.array(
        [
            g.shares[owners == k].sum() * np.exp(log_density(_part(g, owners == k), grid[:, None]))
            for k in present
        ]
    )
    edges = np.cumsum(parts, axis=0)
    peak = max(float(edges[-1].max()), np.finfo(np.float64).tiny)
    y = Scale(0.0, peak, height - 24, 8)
    areas = []
    # From the highest edge down, so that each area needs its upper edge only.
    for i in reversed(range(len(present))):
        if parts[i].max() < _LEAST_AREA * peak:
            continue
        ends = np.array([[x(high), y(0.0)], [x(low), y(0.0)]])
        shape = outline(np.vstack([np.stack([x(grid), y(edges[i])], axis=1), ends]), True)
        areas.append(element("path", d=shape, fill=color(int(present[i])), class_="area"))
    marks = x.ticks(4)
    words = f"Distribution of {name}, from {short(low)} to {short(high)}, stacked by cluster"
    return picture(width, height, words, "".join(areas) + x_axis(x, height - 24, marks))


def _ends(shares: FloatArray, means: FloatArray, deviations: FloatArray) -> tuple[float, float]:
    """Values that all rows but a small share in either tail lie between."""
    edges = np.concatenate([means - 2.5 * deviations, means + 2.5 * deviations])
    order = np.argsort(edges)
    mass = np.cumsum(np.concatenate([shares, shares])[order]) / (2 * shares.sum())
    low = edges[order][np.searchsorted(mass, _TAIL)]
    high = edges[order][min(int(np.searchsorted(mass, 1 - _TAIL)), len(edges) - 1)]
    if high > low:
        return float(low), float(high)
    pad = abs(low) * 0.1 or 1.0
    return float(low - pad), float(high + pad)


def _part(g: GaussianMeasure, chosen: BoolArray) -> GaussianMeasure:
    return GaussianMeasure.of(g.shares[chosen], g.means[chosen], g.variances[chosen])


def changes_chart(found: Comparison) -> str:
    """Shifts of columns with their 95 % intervals, those with evidence in colour."""
    columns = [
        c for c in found.columns[:_MOST_CHANGES] if np.isfinite((c.shift, *c.shift_interval)).all()
    ]
    if not columns:
        return ""
    width = 560
    height = 46 + 24 * len(columns)
    reach = max(abs(end) for c in columns for end in c.shift_interval) or 1.0
    x = Scale(-reach, reach, 170, width - 16)
    parts = [line(float(x(0.0)), 6, float(x(0.0)), height - 40, "axis")]
    for i, c in enumerate(columns):
        y = 18 + 24 * i
        kind = "found" if c.p_value < LEVEL else "calm"
        low, high = (float(x(end)) for end in c.shift_interval)
        name = c.name if len(c.name) <= 22 else c.name[:21] + "…"
        parts.append(label(162, y + 4, name, "tick", "end"))
        parts.append(line(low, y, high, y, f"range {kind}"))
        parts.append(element("circle", cx=float(x(c.shift)), cy=y, r=4, class_=kind))
    parts.append(x_axis(x, height - 40))
    parts.append(
        label((170 + width) / 2, height - 6, "shift of the mean, in standard deviations", "name")
    )
    return picture(width, height, "Shifts of the means of columns, with intervals", "".join(parts))
