"""What a sketch file reveals about its rows, in sentences: `ckm inspect`."""

from ckm._core.sketch import Sketch


def reveals(sketch: Sketch) -> list[str]:
    """Return one sentence for each thing that whoever has the sketch can learn.

    >>> import ckm
    >>> design = ckm.public_frequencies(([0], [1]), n_clusters=2)
    >>> reveals(design)
    ['Nothing about rows: it is a design from public bounds.']
    """
    release = sketch.release
    if release is not None:
        budget = release.budget
        whose = "row" if budget.unit == "row" else f"user (up to {budget.max_rows_per_user} rows)"
        if release.max_weight > 1:
            whose += f" with weights up to {release.max_weight}"
        return [
            f"Differentially private: epsilon = {budget.epsilon:.4g} at delta = {budget.delta:g} "
            f"(rho = {budget.rho:.4g}-zCDP) for each {whose}, added or removed.",
            f"Noise of standard deviation {release.deviation:.4g} on each sum, "
            f"{release.count_deviation:.3g} rows on the number of rows.",
            "Nothing else depends on the rows. Further releases of the same rows add to this.",
        ]
    has_public_design = sketch.frequencies.bounds is not None
    if not sketch.count:
        if has_public_design and sketch.frequencies.spread is not None:
            return ["Scale and origin of a private release, its pilot, and nothing else of rows."]
        if has_public_design:
            return ["Nothing about rows: it is a design from public bounds."]
        return ["Scale and origin, if they were estimated from rows."]
    found = ["The smallest and largest value of each column, which are values of rows."]
    if sketch.cells is not None:
        single = int((sketch.cells.mass == 1).sum())
        found.append(
            f"{single:,} {'row' if single == 1 else 'rows'} in plain numbers: cells of one row."
        )
    if sketch.pool is not None:
        found.append(f"{len(sketch.pool):,} sampled rows in plain numbers: the pool.")
    found.append("Any row by which it differs from another sketch of the same frequencies.")
    if has_public_design:
        found.append(
            "It is exact. Its design is public, so that `ckm release` can make a private one."
        )
    else:
        found.append(
            "Scale, origin and units of a sample of rows. For a private release, start from public "
            "bounds: `ckm frequencies`."
        )
    return found
