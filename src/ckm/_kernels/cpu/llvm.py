"""Helpers for writing LLVM vector code: constants, loads, stores, shuffles and loops on the data of
contiguous NumPy arrays.

Each helper appends instructions to a function that is being built: its first argument `builder`
marks the place, and the values it takes and returns are names of results that exist when the code
runs. `i64(3)` is a constant, `builder.add(a, i64(3))` an instruction. A vector type such as
`FLOATS` has LANES numbers whatever the processor: on one with narrower registers LLVM uses several
for each vector. Nothing is checked: not types, not bounds, not alignment. docs/kernel.md explains
how the kernels use this.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

LANES = 16  # float32 numbers in a vector: one register of 512 bits
HALF = LANES // 2  # float64 numbers in as many bits

# To a type checker an intrinsic is a function of its arguments alone.
intrinsic: Callable[[Any], Any] = _intrinsic

BYTE = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
F32 = ir.FloatType()
F64 = ir.DoubleType()

FLOATS = ir.VectorType(F32, LANES)
INTS = ir.VectorType(I32, LANES)
DOUBLES = ir.VectorType(F64, LANES)
HALF_FLOATS = ir.VectorType(F32, HALF)
HALF_INTS = ir.VectorType(I32, HALF)
HALF_DOUBLES = ir.VectorType(F64, HALF)
HALF_LONGS = ir.VectorType(I64, HALF)


# Constants


def i64(value: int) -> ir.Constant:
    """A constant index, count or address offset."""
    return ir.Constant(I64, value)


def constant(kind: ir.VectorType, value: Any) -> ir.Constant:
    """A vector of this type with the same constant in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def float32(value: Any) -> ir.Constant:
    """A vector with a constant, rounded to float32, in every lane."""
    return constant(FLOATS, float(np.float32(value)))


# Arithmetic


def call(builder: Any, name: str, result: Any, *args: Any) -> Any:
    """Call a function of LLVM itself, such as llvm.fma: one instruction on most machines."""
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [a.type for a in args]), name
    )
    return builder.call(function, args)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once."""
    size = 32 if c.type.element == F32 else 64
    return call(builder, f"llvm.fma.v{c.type.count}f{size}", c.type, a, b, c)


def sum_lanes(builder: Any, vector: Any) -> Any:
    """The sum of the lanes of a float64 vector, added in order."""
    name = f"llvm.vector.reduce.fadd.v{vector.type.count}f64"
    return call(builder, name, F64, ir.Constant(F64, 0.0), vector)


def smaller(builder: Any, a: Any, b: Any) -> Any:
    """The smaller of two integers."""
    return builder.select(builder.icmp_signed("<", a, b), a, b)


# Vectors from numbers and from other vectors


def splat(builder: Any, scalar: Any, lanes: int = LANES) -> Any:
    """One number in every lane."""
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, undefined, constant(ir.VectorType(I32, lanes), 0))


def load_splat(builder: Any, pointer: Any, place: Any, lanes: int = LANES) -> Any:
    """The number at pointer[place] in every lane."""
    return splat(builder, builder.load(builder.gep(pointer, [place])), lanes)


def concatenate(builder: Any, vectors: list[Any]) -> Any:
    """The lanes of all vectors, one after another; their number is a power of two."""
    while len(vectors) > 1:
        lanes = 2 * vectors[0].type.count
        picks = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
        vectors = [
            builder.shuffle_vector(a, b, picks)
            for a, b in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


def transpose(builder: Any, lines: list[Any]) -> list[Any]:
    """The columns of a square whose lines are these vectors.

    For block = 1, 2, 4, .. lanes, the square consists of squares of two by two blocks, and in each
    the two blocks beside the diagonal change places: log2(lanes) rounds of shuffles, each of two
    lines. With fewer lines than lanes, the squares that lie side by side are transposed, each for
    itself.
    """
    lines = list(lines)
    lanes = lines[0].type.count
    block = 1
    while block < len(lines):
        # A shuffle picks lanes of its two vectors, those of the second numbered from `lanes` on.
        low = [lane if not lane & block else lane - block + lanes for lane in range(lanes)]
        high = [lane + block if not lane & block else lane + lanes for lane in range(lanes)]
        picks = [ir.Constant(ir.VectorType(I32, lanes), pick) for pick in (low, high)]
        for i in range(len(lines)):
            if not i & block:
                a = lines[i]
                b = lines[i + block]
                lines[i] = builder.shuffle_vector(a, b, picks[0])
                lines[i + block] = builder.shuffle_vector(a, b, picks[1])
        block *= 2
    return lines


# Memory


def element(context: Any, builder: Any, kind: Any, value: Any, *place: Any) -> Any:
    """A pointer to an element of a contiguous array; to its first if no place is given."""
    array = context.make_array(kind)(context, builder, value)
    flat = i64(0)
    for axis, i in enumerate(place):
        flat = builder.add(builder.mul(flat, builder.extract_value(array.shape, axis)), i)
    return builder.gep(array.data, [flat])


def data_pointers(context: Any, builder: Any, signature: Any, args: Any, *which: int) -> list[Any]:
    """Pointers to the first elements of those arguments, which are arrays."""
    return [context.make_array(signature.args[i])(context, builder, args[i]).data for i in which]


def length(context: Any, builder: Any, kind: Any, value: Any, axis: int) -> Any:
    """The length of an array along an axis."""
    return builder.extract_value(context.make_array(kind)(context, builder, value).shape, axis)


def as_pointer(builder: Any, address: Any, kind: Any) -> Any:
    """An address, which is an integer, as a pointer to numbers of a type."""
    return builder.inttoptr(address, kind.as_pointer())


def load(builder: Any, pointer: Any, place: Any, kind: ir.VectorType) -> Any:
    """The vector that starts at pointer[place]."""
    vector = builder.load(builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer()))
    vector.align = 1  # rows may lie anywhere, and no machine gains from knowing better
    return vector


def store(builder: Any, vector: Any, pointer: Any, place: Any) -> None:
    """Write the vector to pointer[place] and the elements after it."""
    target = builder.bitcast(builder.gep(pointer, [place]), vector.type.as_pointer())
    builder.store(vector, target).align = 4


def variable(builder: Any, value: Any) -> Any:
    """Memory for a value that changes in loops, which LLVM turns into a register."""
    place = cgutils.alloca_once(builder, value.type)
    builder.store(value, place)
    return place


def prefetch(builder: Any, address: Any) -> None:
    """Start loading what is at an address into the second-level cache."""
    kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    for_reading = ir.Constant(I32, 0)
    second_level = ir.Constant(I32, 2)
    as_data = ir.Constant(I32, 1)
    pointer = as_pointer(builder, address, BYTE)
    builder.call(function, [pointer, for_reading, second_level, as_data])


@intrinsic
def add_multiple(
    context: Any, factor: Any, source: Any, place: Any, target: Any, at: Any, count: Any
) -> Any:
    """target[at + j] = fma(factor, source[place + j], target[at + j]) for the first `count` j, a
    multiple of LANES; `source` and `target` are flat float32 arrays.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        factor, _, place, _, at, count = args
        source, target = data_pointers(context, builder, signature, args, 1, 3)
        multiple = splat(builder, factor)
        with loop(builder, i64(0), count, LANES) as (j, _):
            there = builder.add(at, j)
            old = load(builder, target, there, FLOATS)
            own = load(builder, source, builder.add(place, j), FLOATS)
            store(builder, fma(builder, multiple, own, old), target, there)
        return context.get_dummy_value()

    kinds = (types.float32, source, types.int64, target, types.int64, types.int64)
    return types.void(*kinds), generate


# Control flow


def loop(builder: Any, start: Any, stop: Any, step: Any = 1) -> Any:
    """A loop: `with loop(builder, start, stop) as (i, _)` writes its body."""
    return cgutils.for_range_slice(
        builder, start, stop, i64(step) if isinstance(step, int) else step
    )


def out_of_line(builder: Any, name: str, values: list[Any], write: Callable[..., None]) -> None:
    """Call write(builder, *values) as a function of its own, never inlined: as part of a larger
    function it would have too few registers, and LLVM would spill.
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
    """Whether code is generated for a processor with this feature."""
    return f"+{name}" in context.codegen().magic_tuple()[2].split(",")
