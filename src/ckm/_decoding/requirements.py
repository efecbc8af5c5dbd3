"""What a sketch must be to be decoded, with the sentence of each refusal."""

from ckm._core.release import Release
from ckm._core.sketch import Sketch
from ckm._messages import Argument, Aside
from ckm.errors import DataError, ParameterError


def require_decodable(sketch: Sketch, function: str = "decode") -> None:
    """Refuse what is no sketch, and an empty one."""
    if not isinstance(sketch, Sketch):
        raise ParameterError(
            f"{function} takes a Sketch; got {type(sketch).__name__}. Make one with ckm.sketch, or "
            f"read one with ckm.load."
        )
    if sketch.count == 0:
        raise DataError(
            "This sketch has seen zero rows, so there is nothing to decode; add sketches of some "
            "rows to it first."
        )


def require_noised_rows(release: Release, K: int) -> None:
    """Refuse a private release of fewer rows than clusters, as far as the noise lets tell."""
    rows = release.count / release.steps.count
    if rows < K:
        raise DataError(
            f"This private release is of {rows:.0f} rows, with noise of "
            f"{release.count_deviation:.3g} on their number: too few for ",
            Argument("n_clusters", K),
            ". Merge releases of more rows, or release with a larger ",
            Argument("epsilon"),
            ".",
        )


def require_rows(count: int, K: int, where: str = "The data", name: str = "n_clusters") -> None:
    """Refuse more clusters than rows; `name` is the argument that asks for K.

    scikit-learn looks for `n_samples`, and for its last words, in these messages.
    """
    if not count:
        raise DataError(
            f"{where} has zero rows",
            Aside(" (n_samples=0)"),
            ", so there is nothing to cluster; check what was read.",
        )
    if count < K:
        raise DataError(
            f"{where} has {count} {'row' if count == 1 else 'rows'}",
            Aside(f" (n_samples={count})"),
            ", too few for ",
            Argument(name, K),
            f"; ask for at most {count}, or add rows",
            Aside(f": n_samples should be >= {name}"),
            ".",
        )
