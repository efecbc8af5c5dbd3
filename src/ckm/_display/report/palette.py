"""Colours of clusters, on a light and on a dark page. Clusters beyond the last start again; each is
also told by its number.
"""

LIGHT = (
    "#2f6db5",
    "#c9601c",
    "#27836a",
    "#b83b75",
    "#7556b5",
    "#94720f",
    "#1f7f9f",
    "#9c4536",
    "#5a7a1a",
    "#56646f",
)
DARK = (
    "#7db2ee",
    "#f2a067",
    "#66cfac",
    "#ee8cb9",
    "#bda6ee",
    "#e0c05c",
    "#7fcbe8",
    "#e2968a",
    "#b0d06c",
    "#aab8c4",
)


def color(k: int) -> str:
    """The colour of cluster k, as CSS that follows the page's theme.

    >>> color(0), color(10)
    ('var(--k0)', 'var(--k0)')
    """
    return f"var(--k{k % len(LIGHT)})"


def variables(colors: tuple[str, ...]) -> str:
    """The colours as declarations of CSS."""
    return "".join(f"--k{i}:{value};" for i, value in enumerate(colors))
