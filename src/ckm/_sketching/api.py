"""`ckm.sketch`: a sketch of any data in one pass."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from ckm._core.defaults import CHECKPOINT_INTERVAL, DEFAULT_DISTRIBUTION
from ckm._core.frequencies import Frequencies
from ckm._core.sketch import Sketch
from ckm._sketching.screened_pass import sketch_screened
from ckm._sketching.screening import Screening
from ckm._util.checks import EUCLIDEAN
from ckm._util.random import RandomState


def sketch(
    data: Any,
    *,
    n_clusters: int | None = None,
    sketch_size: int | None = None,
    scale: float | str = "auto",
    distribution: str = DEFAULT_DISTRIBUTION,
    like: Sketch | Frequencies | str | PathLike[str] | None = None,
    sample_weight: Any = None,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    weight_column: str | None = None,
    user_column: str | None = None,
    max_rows_per_user: int | None = None,
    nan: str = "error",
    standardize: bool | str = False,
    log: Sequence[str] | None = None,
    categories: Any = None,
    projection: Any = "auto",
    metric: str = EUCLIDEAN,
    cells: int | str = "auto",
    pool: int = 0,
    random_state: RandomState = None,
    n_jobs: int | None = None,
    device: str = "auto",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_interval: float = CHECKPOINT_INTERVAL,
    resume: bool = False,
    progress: bool = False,
) -> Sketch:
    """Compress data into a sketch in one pass.

    The sketch is the characteristic function of the data at m frequencies (equation 3)::

        z_j = sum_l beta_l exp(-i omega_j^T (x_l - origin)) / sum_l beta_l

    with rows x_l, weights beta_l, frequencies omega_j and the mean of a sample as the origin. Its
    size does not depend on the number of rows. `ckm.decode` finds centroids in it.

    For the same frequencies and unweighted rows the result is bit-identical however the rows are
    ordered, split into files or batches, and distributed over threads and workers.

    Parameters
    ----------
    data : array-like, data frame, str, path, list, query, stream, iterable or engine collection
        The rows (N, n). One of

        - a NumPy array, a sparse matrix, or a tensor on the CPU or on a GPU;
        - a pandas, polars (also lazy), PyArrow or DuckDB table, or any object with
          ``__arrow_c_stream__``;
        - a file name, a glob pattern, a folder or a list of file names: ``.npy``, ``.csv`` (also
          ``.gz`` and ``.zst``), ``.parquet``, ``.arrow``, ``.feather``, ``.h5`` and ``.zarr``; on
          this machine, or by address (``s3://``, ``gs://``, ``az://``, ``https://``);
        - ``"-"`` for standard input, an open file, or a database cursor;
        - an iterable of arrays, tensors or data frames, or a function that returns one;
        - a Dask array, data frame or bag of batches, a Spark data frame or a Ray dataset. The
          rows stay where they are, and workers send back sums.

        Data without rows gives an empty sketch.
    n_clusters : int, optional
        The number K of clusters that the sketch will be decoded to. Sets the size of the sketch to
        m = 5 K n unless `sketch_size` is given; beside cells to fewer, but at least 2 K n, if
        n > 10 or K n > 800, and at most 1000 for rows that are projected. With `like`, it is only
        checked that the size is sufficient.
    sketch_size : int, optional
        The number m of frequencies.
    scale : "auto" or float, default="auto"
        The variance sigma^2 that the frequencies are scaled to. "auto" estimates it from a sample
        of the rows: as the variance within `n_clusters` clusters (m / 5n clusters if only
        `sketch_size` is given) for "multiscale" and "structured", and by the paper's rule for the
        other distributions.
    distribution : {"multiscale", "structured", "adapted-radius", "folded-gaussian", "gaussian"}, \
default="multiscale"
        The distribution of the frequencies. "adapted-radius" is the paper's.
        "multiscale" is the same at many scales, so that results hardly depend on `scale`.
        "structured" has the radii of "multiscale" and directions with a fast transform: a row
        costs O(m log n) operations instead of O(m n), and the file of the sketch O(m) bytes. Use
        it for 100 columns and more.
    like : Sketch, Frequencies, str or path, optional
        A sketch, its frequencies, or the name of its file. The new sketch uses the same
        frequencies and column names, so that the two can be merged.
    sample_weight : array-like of shape (N,), optional
        Non-negative weights beta. A row of weight two counts as two rows, a row of weight zero as
        none.
    columns : list of str, optional
        The columns of a table to use, in this order. By default all numeric columns are used, and
        a warning names the others. A column that is clearly an id (unique whole numbers in order,
        with most of the variance) is then left out, with a warning, unless `like` is given.
        Columns of dates are used only if they are named: as days since 1970.
    exclude : list of str, optional
        Columns of a table that are not used.
    weight_column : str, optional
        The column of a table that holds the weights beta.
    user_column : str, optional
        The column of a table that says, by a number or a name, whose row each row is. It is not
        clustered. Used together with `max_rows_per_user`.
    max_rows_per_user : int, optional
        Of each user the first so many rows count, in the order in which they are read, and the
        others are left out. All rows of a user must be in this one sketch: of sketches that are
        merged, each may hold so many.
    nan : {"error", "drop", "impute"}, default="error"
        How to handle missing values: raise an error that names the first, drop their rows, or
        replace them by the origin of the frequencies, which is about the mean of their column. A
        warning counts them.
    standardize : bool or "robust", default=False
        Divide each column by its standard deviation. Frequencies are drawn for that of a sample of
        the rows; distances and SSEs are measured by that of all rows, which the sketch knows
        exactly. Centroids are returned in the units of the data. "robust" divides by the
        interquartile range of the sample instead (as a multiple of that of a Gaussian), which
        outliers do not change. With `like`, its units are used.
    log : list of str, optional
        Columns that are replaced by their logarithms first, as heavy-tailed amounts should be:
        `sign(x) log(1 + |x|)`. Centroids are returned in the units of the data. With `like`, its
        logarithms are taken.
    categories : list of str or dict, optional
        Columns of text, whole numbers or booleans that are used too, coded as numbers; they come
        after the others. By default a column of zeros and ones per value (`plan=basic`,
        `plan=pro`), whose centroids are shares. A dict gives each name a coding, "onehot" or
        "frequency" (the share of sampled rows with that value), a weight, or a pair of both. The
        values that are told apart are those of 5000 sampled rows, at most the 32 most frequent
        ones (1000 for "frequency"); all others are "other", and a missing value is the value
        "missing". Coded columns are multiplied by the weight, 1 by default; with `standardize`
        the columns of a category together have the variance of one column, times the square of
        the weight. With `like`, its coding is used. Not for data of an engine.
    projection : "auto", int, array (d, n) or None, default="auto"
        Project rows of many columns to d numbers first, and draw frequencies for these: d axes in
        which a sample of the rows varies most ("auto": as many as k-means needs, for 64 columns
        and more and the default distribution; an int: so many), or the lines of a matrix. None
        leaves rows as they are. Centroids have all columns. With `like`, its projection is used.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", each row is divided by its length before anything else, a block at a time, so
        that only directions count. Centroids are means of such unit rows, which are shorter than
        one. A row of zeros stays as it is: it counts, at the distance 1 from every unit row. Not
        for `standardize`. With `like`, its metric is used.
    cells : "auto" or int, default="auto"
        The number of anchors, which a sample of the rows decides. In the same pass each row goes to
        the nearest one, and the sketch keeps count, sum and squared length of the rows of each
        cell: centroids are then placed faster and better. A cell of one row is that row. "auto" is
        16 per cluster (48 from 500 clusters on), at least 160 (none on a GPU without Triton); 0
        keeps the frequencies alone. With `like`, its anchors are used.
    pool : int, default=0
        The number of sampled rows to keep in the sketch, from which the decoder can start and
        place centroids. A hundred per cluster are worth as much as the sketch itself. Rows far
        from the mean are more likely to be sampled, since a few of them may dominate the SSE.
    random_state : int, Generator, RandomState or None, default=None
        Determines the frequencies, the sample for scale and origin, and the pool. None uses a new
        seed for each call.
    n_jobs : int, optional
        The number of threads. None means all cores, or one thread per task on an engine. The
        result does not depend on it.
    device : {"auto", "cpu", "cuda", "cuda:0", "cuda:1", ...}, default="auto"
        Where the sums are computed. "auto" is where the rows are: in place for rows on a GPU,
        otherwise on the CPU. "cuda" uses every GPU that torch finds: rows on the CPU are copied
        there block by block, rows on a GPU are summed in place. "cuda:1" is that GPU alone. "cpu"
        copies rows on a GPU to the CPU block by block. On an engine it is the device of each
        worker. A device that does not exist is an error.
    checkpoint : str or path, optional
        A file to which the state of the pass is written regularly, and when the pass ends or
        fails. Only for rows in files. The file is not removed at the end.
    checkpoint_interval : float, default=10.0
        The seconds between two checkpoints.
    resume : bool, default=False
        Continue from `checkpoint` if that file exists. With the same options and files the sketch
        is bit-identical to that of an uninterrupted pass.
    progress : bool, default=False
        Show a progress bar on a terminal.

    Returns
    -------
    Sketch
        The sketch of all rows.

    Raises
    ------
    DataError
        If the rows cannot be used: not numeric, not two-dimensional, not finite
        (`NonFiniteError`), or all equal so that no scale can be estimated.
    ParameterError
        If an argument is invalid, contradicts another, or the size of the sketch is not known.
    MismatchError
        If the data does not have the columns of `like`.
    CheckpointError
        If the checkpoint to resume from is damaged, or its files have changed.
    OutputError
        If the checkpoint cannot be written, or another process is writing it.
    EngineError
        If Dask, Spark or Ray lost workers and gave up.

    Warns
    -----
    AdviceWarning
        If a table has ids among the columns that are clustered.
    ColumnsWarning
        If columns that are not numeric, or an id, were left out.
    MissingRowsWarning
        If rows with missing values were dropped, or missing values were replaced.
    PhaseWarning
        If rows are so far from the origin that their phases lose all precision.
    ScaleWarning
        If there were no rows to estimate the scale from.

    See Also
    --------
    decode : Find centroids in a sketch.
    merge : Merge sketches with the same frequencies.
    Sketcher : Sketch batches of rows as they arrive.

    Examples
    --------
    >>> import ckm, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> s = ckm.sketch(X, n_clusters=2, random_state=0)
    >>> s.z.shape, s.count
    ((30,), 1000)

    Sketches of two parts of the data, with the same frequencies, add up to the sketch of all rows:

    >>> first = ckm.sketch(X[:400], n_clusters=2, random_state=0)
    >>> second = ckm.sketch(X[400:], like=first)
    >>> (first + second) == ckm.sketch(X, like=first)
    True
    """
    return sketch_screened(
        data,
        Screening(),
        n_clusters=n_clusters,
        sketch_size=sketch_size,
        scale=scale,
        distribution=distribution,
        like=like,
        sample_weight=sample_weight,
        columns=columns,
        exclude=exclude,
        weight_column=weight_column,
        user_column=user_column,
        max_rows_per_user=max_rows_per_user,
        nan=nan,
        standardize=standardize,
        log=log,
        categories=categories,
        projection=projection,
        metric=metric,
        cells=cells,
        pool=pool,
        random_state=random_state,
        n_jobs=n_jobs,
        device=device,
        checkpoint=checkpoint,
        checkpoint_interval=checkpoint_interval,
        resume=resume,
        progress=progress,
    )
