"""`ckm.to_onnx`: the labels of a fitted model as a graph of ONNX, for runtimes without Python.

The graph computes in float64 what `predict` does: the columns prepared, divided by their units and,
for metric="cosine", by the length of the row; then the smallest score s(c) = |c|^2 / 2 - x.c, with
rows and centroids relative to the middle of the centroids, as in `ckm._kmeans.index`.
"""

import json
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ckm._core.preparation import categories_of
from ckm._decoding.solution import Solution, centroids_of
from ckm._kmeans.assign import Centroids
from ckm._messages import Argument
from ckm._sklearn.fitting import SketchedEstimator, centroids_and_fill
from ckm._sklearn.mixture_state import SketchedMixture
from ckm._util.arrays import FloatArray
from ckm._util.checks import COSINE
from ckm.errors import MissingPackageError, ParameterError

# Old enough for the runtimes of today, new enough for every operator in float64.
OPSET = 17
IR_VERSION = 8
INPUT = "rows"
OUTPUT = "labels"
MISSING_LABEL = -1


def to_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Make an ONNX model of the labels that a fitted model predicts.

    The graph has one input, `rows` (N, n), with the columns of the model in their order, and one
    output, `labels` (N,), int64. Preparation, units and metric are part of it. It computes in
    float64; labels are those of `predict` on the same rows, except where a row is as near to two
    centroids as rounding tells. Rows with missing or infinite values get the label -1; a model
    with `nan="impute"` fills missing values in.

    Parameters
    ----------
    model : CompressiveKMeans or Solution
        A fitted model, or what `ckm.decode` returned.
    dtype : {"float32", "float64"}, default="float32"
        The type of the input. Rows in float64 that are rounded to float32 first may change label
        at the border of two clusters.

    Returns
    -------
    onnx.ModelProto
        The model; `onnx.save(found, "model.onnx")` writes it to a file. Its metadata has the names
        of the columns, if the model has any.

    Raises
    ------
    ParameterError
        If it is another kind of model or dtype, or a model of categories.
    MissingPackageError
        If onnx is not installed.

    Examples
    --------
    >>> import ckm
    >>> X = ckm.datasets.gaussian_mixture(2000, 3, 2, separation=20, random_state=1).rows
    >>> solution = ckm.decode(ckm.sketch(X, n_clusters=3, random_state=0), 3, random_state=0)
    >>> found = ckm.to_onnx(solution)  # doctest: +SKIP
    """
    try:
        from onnx import TensorProto, checker, helper
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"{error.name} is not installed; to_onnx needs it: "
            "pip install 'compressive-kmeans[onnx]'"
        ) from None
    kinds = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE}
    if dtype not in kinds:
        raise ParameterError(Argument("dtype", dtype), " is neither 'float32' nor 'float64'.")
    centroids, fill = _parts(model)
    if categories_of(centroids.preparation):
        raise ParameterError(
            "to_onnx takes models of numbers; this one codes ",
            Argument("categories", ...),
            ". Code them before it, for example by scikit-learn's OneHotEncoder.",
        )
    graph = _Graph(helper)
    graph.label(centroids, fill)
    n = centroids.values.shape[1]
    rows = helper.make_tensor_value_info(INPUT, kinds[dtype], ["N", n])
    labels = helper.make_tensor_value_info(OUTPUT, TensorProto.INT64, ["N"])
    found = helper.make_model(
        helper.make_graph(graph.nodes, "ckm", [rows], [labels], graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="ckm",
    )
    if centroids.columns is not None:
        helper.set_model_props(found, {"columns": json.dumps(centroids.columns)})
    checker.check_model(found)
    return found


def _parts(model: Any) -> tuple[Centroids, FloatArray | None]:
    """What labels rows, and what missing values are replaced by, if they are."""
    if isinstance(model, Solution):
        return centroids_of(model), None
    # A mixture is labelled by densities, not by distances.
    if not isinstance(model, SketchedEstimator) or isinstance(model, SketchedMixture):
        raise ParameterError(
            f"to_onnx takes a fitted CompressiveKMeans or a Solution, not {type(model).__name__}."
        )
    check_is_fitted(model)
    return centroids_and_fill(model)


class _Graph:
    """Nodes and constants of a graph, in the order in which they are computed."""

    def __init__(self, helper: Any) -> None:
        self._helper = helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """The name of a constant: an array of float64, or int64."""
        from onnx import numpy_helper

        array = np.asarray(value)
        kind = np.float64 if array.dtype.kind == "f" else np.int64
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array.astype(kind), name))
        return name

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """The name of what an operator returns."""
        name = output or f"v{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, inputs, [name], **attributes))
        return name

    def label(self, centroids: Centroids, fill: FloatArray | None) -> None:
        """The steps from rows to labels."""
        x = self.node("Cast", INPUT, to=self._helper.np_dtype_to_tensor_dtype(np.dtype("f8")))
        if fill is not None:
            x = self.node("Where", self.node("IsNaN", x), self.constant(fill), x)
        # Zero times a value that is not finite is not a number.
        nothing = self.node("Mul", x, self.constant(0.0))
        last = self.constant([1])
        is_missing = self.node("IsNaN", self.node("ReduceSum", nothing, last, keepdims=0))
        x = self.measured(x, centroids)
        C = centroids.measured_values
        middle = C.min(axis=0) / 2 + C.max(axis=0) / 2
        x = self.node("Sub", x, self.constant(middle))
        product = self.node("MatMul", x, self.constant((C - middle).T))
        half_norms = self.constant(((C - middle) ** 2).sum(axis=1) / 2)
        scores = self.node("Sub", half_norms, product)
        nearest = self.node("ArgMin", scores, axis=1, keepdims=0)
        self.node("Where", is_missing, self.constant(MISSING_LABEL), nearest, output=OUTPUT)

    def measured(self, x: str, centroids: Centroids) -> str:
        """Rows as distances are measured."""
        preparation = centroids.preparation
        if preparation is not None and preparation.logged:
            is_logged = np.isin(np.arange(centroids.values.shape[1]), preparation.logged)
            size = self.node("Add", self.node("Abs", x), self.constant(1.0))
            logarithm = self.node("Mul", self.node("Sign", x), self.node("Log", size))
            as_mask = self.node(
                "Greater", self.constant(is_logged.astype(float)), self.constant(0.0)
            )
            x = self.node("Where", as_mask, logarithm, x)
        if centroids.units is not None:
            x = self.node("Div", x, self.constant(centroids.units))
        return self.unit_rows(x) if centroids.metric == COSINE else x

    def unit_rows(self, x: str) -> str:
        """Rows divided by their lengths, rounded to float32 as in `ckm._sources.unit_rows`."""
        to_type = self._helper.np_dtype_to_tensor_dtype
        squares = self.node("ReduceSum", self.node("Mul", x, x), self.constant([1]))
        inverse = self.node("Div", self.constant(1.0), self.node("Sqrt", squares))
        is_zero = self.node("Equal", squares, self.constant(0.0))
        factor = self.node("Where", is_zero, self.constant(0.0), inverse)
        short = self.node("Cast", self.node("Mul", x, factor), to=to_type(np.dtype("f4")))
        return self.node("Cast", short, to=to_type(np.dtype("f8")))
