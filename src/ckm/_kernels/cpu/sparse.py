"""The innermost loop of the search for the centroid nearest to a sparse row, as LLVM vectors along
centroids.
"""

from typing import Any

from numba import types

from ckm._kernels.cpu.llvm import (
    F64,
    HALF,
    HALF_DOUBLES,
    I64,
    data_pointers,
    fma,
    i64,
    intrinsic,
    length,
    load,
    loop,
    splat,
    store,
    variable,
)

# Vectors of centroids that share a walk along a row, the most first: their sums stay in registers.
_GROUPS = (8, 2, 1)


@intrinsic
def subtract_products(
    context: Any, values: Any, columns: Any, low: Any, high: Any, table: Any, sums: Any
) -> Any:
    """sums[k] -= values[j] table[columns[j], k] for j from low to high, each rounded once.

    Arrays values (float32 or float64) and columns (int32), float64 arrays table (n, K + padding)
    and sums (K + padding,), where K + padding is a multiple of HALF. Columns are not checked.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values, columns, table, sums = data_pointers(context, builder, signature, args, 0, 1, 4, 5)
        low, high = args[2:4]
        width = length(context, builder, signature.args[5], args[5], 0)
        start = i64(0)
        for size in _GROUPS:
            # all vectors that groups of this size can take, and the rest for smaller groups
            step = HALF * size
            whole = builder.mul(builder.sdiv(builder.sub(width, start), i64(step)), i64(step))
            stop = builder.add(start, whole)
            with loop(builder, start, stop, step) as (k, _):
                places = [builder.add(k, i64(HALF * i)) for i in range(size)]
                totals = [variable(builder, load(builder, sums, p, HALF_DOUBLES)) for p in places]
                with loop(builder, low, high) as (j, _):
                    x = builder.load(builder.gep(values, [j]))
                    x = x if x.type == F64 else builder.fpext(x, F64)
                    negative = splat(builder, builder.fneg(x), HALF)
                    column = builder.sext(builder.load(builder.gep(columns, [j])), I64)
                    line = builder.gep(table, [builder.mul(column, width)])
                    for place, total in zip(places, totals, strict=True):
                        c = load(builder, line, place, HALF_DOUBLES)
                        builder.store(fma(builder, negative, c, builder.load(total)), total)
                for place, total in zip(places, totals, strict=True):
                    store(builder, builder.load(total), sums, place)
            start = stop
        return context.get_dummy_value()

    return types.void(values, columns, types.int64, types.int64, table, sums), generate
