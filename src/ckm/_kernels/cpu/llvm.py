"""Words for writing LLVM vectors: constants, loads, stores and calls, on the data of contiguous
NumPy arrays. Nothing is checked.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

LANES = 16  # float32 numbers a vector; on narrower machines LLVM splits it
HALF = LANES // 2  # float64 numbers in as many bits

# To a type checker an intrinsic is a function of its arguments alone.
intrinsic: Callable[[Any], Any] = _intrinsic

BYTE, I32, I64, F32, F64 = (
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.FloatType(),
    ir.DoubleType(),
)
FLOATS, INTS, DOUBLES = (ir.VectorType(kind, LANES) for kind in (F32, I32, F64))
HALF_FLOATS, HALF_INTS, HALF_DOUBLES = (ir.VectorType(kind, HALF) for kind in (F32, I32, F64))


def index(value: int) -> ir.Constant:
    """A constant place in an array."""
    return ir.Constant(I64, value)


def every(kind: ir.VectorType, value: Any) -> ir.Constant:
    """A constant in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def float32(value: Any) -> ir.Constant:
    """A constant rounded to float32 in every lane."""
    return every(FLOATS, float(np.float32(value)))


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Call an LLVM intrinsic such as llvm.fma on vectors."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [a.type for a in args]), name
    )
    return builder.call(function, args)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""
    return call(
        builder, f"llvm.fma.v{c.type.count}f{32 if c.type.element == F32 else 64}", c.type, a, b, c
    )


def add_lanes(builder: Any, vector: Any) -> Any:
    """The lanes of a vector of float64, added in order."""
    return call(
        builder,
        f"llvm.vector.reduce.fadd.v{vector.type.count}f64",
        F64,
        ir.Constant(F64, 0.0),
        vector,
    )


def splat(builder: Any, scalar: Any, lanes: int = LANES) -> Any:
    """One number in every lane."""
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, undefined, every(ir.VectorType(I32, lanes), 0))


def spread(builder: Any, pointer: Any, place: Any, lanes: int = LANES) -> Any:
    """The number at pointer[place] in every lane."""
    return splat(builder, builder.load(builder.gep(pointer, [place])), lanes)


def joined(builder: Any, vectors: list[Any]) -> Any:
    """One vector after another, two at a time: as many as a power of two."""
    while len(vectors) > 1:
        picks = ir.Constant(
            ir.VectorType(I32, 2 * vectors[0].type.count), list(range(2 * vectors[0].type.count))
        )
        vectors = [
            builder.shuffle_vector(a, b, picks)
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """The columns of these vectors, of which there are as many as lanes: blocks of 1, 2, 4 .. lanes
    change places across the diagonal.

    With fewer vectors, the same for each of the squares that lie side by side in them.
    """
    lines, lanes, block = list(lines), lines[0].type.count, 1
    while block < len(lines):
        low = [lane if not lane & block else lane - block + lanes for lane in range(lanes)]
        high = [lane + block if not lane & block else lane + lanes for lane in range(lanes)]
        picks = [ir.Constant(ir.VectorType(I32, lanes), pick) for pick in (low, high)]
        for i in range(len(lines)):
            if not i & block:
                a, b = lines[i], lines[i + block]
                lines[i], lines[i + block] = (builder.shuffle_vector(a, b, pick) for pick in picks)
        block *= 2
    return lines


def element(context: Any, builder: Any, kind: Any, value: Any, *place: Any) -> Any:
    """Where an element of an array is; its first when no place is given."""
    array, flat = context.make_array(kind)(context, builder, value), index(0)
    for axis, i in enumerate(place):
        flat = builder.add(builder.mul(flat, builder.extract_value(array.shape, axis)), i)
    return builder.gep(array.data, [flat])


def length(context: Any, builder: Any, kind: Any, value: Any, axis: int) -> Any:
    """One of an array's dimensions."""
    return builder.extract_value(context.make_array(kind)(context, builder, value).shape, axis)


def at_address(builder: Any, address: Any, kind: Any) -> Any:
    """An address, which is an integer, as a pointer."""
    return builder.inttoptr(address, kind.as_pointer())


def load(builder: Any, pointer: Any, place: Any, kind: ir.VectorType) -> Any:
    """The vector that starts at pointer[place]."""
    vector = builder.load(builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer()))
    vector.align = 1  # rows may lie anywhere, and nothing is gained by knowing better
    return vector


def store(builder: Any, vector: Any, pointer: Any, place: Any) -> None:
    """Write the vector to pointer[place] and what follows."""
    builder.store(
        vector, builder.bitcast(builder.gep(pointer, [place]), vector.type.as_pointer())
    ).align = 4


def variable(builder: Any, value: Any) -> Any:
    """A place for a value that changes in loops; LLVM makes it a register."""
    place = cgutils.alloca_once(builder, value.type)
    builder.store(value, place)
    return place


def loop(builder: Any, start: Any, stop: Any, step: Any = 1) -> Any:
    """A loop over places: `with loop(...) as (place, _)`."""
    return cgutils.for_range_slice(
        builder, start, stop, index(step) if isinstance(step, int) else step
    )


def no_more(builder: Any, value: Any, most: Any) -> Any:
    """The smaller of two integers."""
    return builder.select(builder.icmp_signed("<", value, most), value, most)


def prefetch(builder: Any, address: Any) -> None:
    """Ask for what is at an address, which will be read in a while."""
    kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read, not_too_near, as_data = (ir.Constant(I32, flag) for flag in (0, 2, 1))
    builder.call(function, [at_address(builder, address, BYTE), read, not_too_near, as_data])


def apart(builder: Any, name: str, values: list[Any], write: Callable[..., None]) -> None:
    """Call write(builder, *values) as a function of its own: within a larger one, registers would
    be short and LLVM would spill.
    """
    kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    function = ir.Function(builder.module, kind, builder.module.get_unique_name(name))
    function.linkage = "internal"
    function.attributes.add("noinline")
    own = ir.IRBuilder(function.append_basic_block())
    write(own, *function.args)
    own.ret_void()
    builder.call(function, values)


def has_feature(context: Any, name: str) -> bool:
    """Whether code is made for a processor with this feature."""
    return f"+{name}" in context.codegen().magic_tuple()[2].split(",")
