"""`init` and `n_init` of the estimator, with scikit-learn's meaning."""

from typing import Any

import numpy as np

from ckm._decoding.numbering import as_centroids, given_centroids, require_number
from ckm._decoding.starts import is_random, require_init, resolve_n_init
from ckm._messages import Argument
from ckm._sklearn.rows import ValidatedRows, fitted_columns
from ckm._sources.arrays import ArraySource
from ckm._sources.sparse import SparseSource
from ckm._util.arrays import FloatArray
from ckm._util.random import stream
from ckm._util.warn import warn_user
from ckm.errors import ParameterError

# The largest seed that NumPy's RandomState takes.
_SEEDS = 2**32


def choose_starts(
    model: Any, rows: ValidatedRows | None, seed: int
) -> tuple[int, tuple[FloatArray, ...]]:
    """The number of decodings, and the centroids (K, n) that each starts from, if `init` says so.

    `rows` are those that a function is called with; None if there are none.
    """
    init = model.init
    runs = resolve_n_init(model.n_init, is_random(init))
    if isinstance(init, str):
        return runs, ()
    if callable(init):
        return runs, tuple(_call(model, rows, stream(seed, "init", i)) for i in range(runs))
    if runs != 1:
        warn_user(
            "Explicit initial center position passed: performing only one init in "
            f"{type(model).__name__} instead of n_init={runs}.",
            RuntimeWarning,
        )
    return 1, (_checked(model, init),)


def check_init(model: Any, has_rows: bool) -> None:
    """Refuse, before the pass over the data, what cannot be a start."""
    resolve_n_init(model.n_init, is_random(model.init))
    if isinstance(model.init, str):
        require_init(model.init, has_rows)
    elif not callable(model.init):
        _checked(model, model.init)


def _checked(model: Any, centres: Any) -> FloatArray:
    if isinstance(model.n_clusters, str):
        raise ParameterError(
            Argument("init"),
            " gives as many centroids as there are clusters, and ",
            Argument("n_clusters", model.n_clusters),
            " leaves their number open; give that number.",
        )
    columns = fitted_columns(model) or None
    values = given_centroids(centres, model.n_features_in_, columns, "init")
    require_number(values, model.n_clusters, "init")
    return values


def _call(model: Any, rows: ValidatedRows | None, rng: np.random.Generator) -> FloatArray:
    """What the function `init` returns for these rows."""
    source = None if rows is None else rows.source
    if not isinstance(source, ArraySource | SparseSource):
        raise ParameterError(
            Argument("init"),
            " is a function of the rows, and these are not in memory; give an array of centroids, "
            "or a name.",
        )
    random_state = np.random.RandomState(int(rng.integers(_SEEDS)))
    centres = model.init(source.values, model.n_clusters, random_state=random_state)
    return _checked(model, as_centroids(centres, "init"))
