"""The limit that kernels are held against: float32 multiply-adds a second, in registers and on
nothing else.

Accumulators that do not depend on each other go through a = a x + b as LLVM vectors, in a loop that
touches no memory. There are several widths and numbers of accumulators, since machines differ; the
fastest counts.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# 24 are as many as the registers hold
SHAPES = [(lanes, accumulators) for lanes in (8, 16) for accumulators in (10, 12, 16, 24)]
ROUNDS = 4000  # of a loop, at least: half a millisecond


def _multiply_adds(lanes: int, accumulators: int) -> Callable[[int, float, float], float]:
    number, vector = ir.FloatType(), ir.VectorType(ir.FloatType(), lanes)

    @intrinsic
    def spin(context: Any, rounds: Any, x: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def every(value: Any) -> Any:
                nothing, zeros = (
                    ir.Constant(vector, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), lanes), None),
                )
                return builder.shuffle_vector(
                    builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0)),
                    nothing,
                    zeros,
                )

            def call(name: str, result: Any, *values: Any) -> Any:
                kind = ir.FunctionType(result, [value.type for value in values])
                return builder.call(
                    cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{lanes}f32"),
                    values,
                )

            x, b = every(args[1]), every(args[2])
            totals = [
                cgutils.alloca_once_value(builder, ir.Constant(vector, [float(i)] * lanes))
                for i in range(accumulators)
            ]
            with cgutils.for_range(builder, args[0]):
                for total in totals:
                    builder.store(call("llvm.fma", vector, builder.load(total), x, b), total)
            result = builder.load(totals[0])
            for total in totals[1:]:  # used, or LLVM would leave it out
                result = builder.fadd(result, builder.load(total))
            return call("llvm.vector.reduce.fadd", number, ir.Constant(number, 0.0), result)

        return types.float32(types.int64, types.float32, types.float32), generate

    @njit(nogil=True)
    def run(rounds, x, b):
        return spin(rounds, x, b)

    return run


class Probe:
    """Multiply-adds a second, of one thread or of several at once."""

    def __init__(self) -> None:
        self._x, self._b = np.float32(0.5), np.float32(1)
        loops = {shape: _multiply_adds(*shape) for shape in SHAPES}
        for loop in loops.values():
            loop(1, self._x, self._b)
        speeds = dict.fromkeys(SHAPES, 0.0)
        for _ in range(20):
            for shape, loop in loops.items():
                speeds[shape] = max(speeds[shape], self._speed(loop, shape, ROUNDS))
        self.shape = max(speeds, key=lambda shape: speeds[shape])
        self._loop, self._fastest = loops[self.shape], speeds[self.shape]

    def _speed(
        self, loop: Callable[[int, float, float], float], shape: tuple[int, int], rounds: int
    ) -> float:
        began = time.thread_time()
        loop(rounds, self._x, self._b)
        return rounds * shape[0] * shape[1] / (time.thread_time() - began)

    def _rounds(self, seconds: float) -> int:
        return max(ROUNDS, int(seconds * self._fastest / (self.shape[0] * self.shape[1])))

    def alone(self, seconds: float) -> float:
        """The speed of one thread over about so many seconds of its own time."""
        return self._speed(self._loop, self.shape, self._rounds(seconds))

    def together(self, threads: int, seconds: float) -> float:
        """The speed of several threads together over about so many seconds, by the clock."""
        rounds = self._rounds(seconds)
        with ThreadPoolExecutor(threads) as executor:
            began = time.perf_counter()
            list(executor.map(lambda _: self._loop(rounds, self._x, self._b), range(threads)))
            elapsed = time.perf_counter() - began
        return threads * rounds * self.shape[0] * self.shape[1] / elapsed
