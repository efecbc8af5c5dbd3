"""The limit that kernels are compared with: float32 multiply-adds per second, in registers alone.

Independent accumulators go through a = a x + b as LLVM vectors, in a loop that touches no memory.
Several widths and numbers of accumulators are tried, since machines differ; the fastest counts.
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

# Lanes and accumulators; 24 accumulators are as many as the registers hold.
SHAPES = [(lanes, accumulators) for lanes in (8, 16) for accumulators in (10, 12, 16, 24)]
ROUNDS = 4000  # rounds of a loop, at least: half a millisecond


def _multiply_adds(lanes: int, accumulators: int) -> Callable[[int, float, float], float]:
    number = ir.FloatType()
    vector = ir.VectorType(number, lanes)

    @intrinsic
    def spin(context: Any, rounds: Any, x: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def splat(value: Any) -> Any:
                undefined = ir.Constant(vector, ir.Undefined)
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), None)
                one = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
                return builder.shuffle_vector(one, undefined, zeros)

            def call(name: str, result: Any, *values: Any) -> Any:
                kind = ir.FunctionType(result, [value.type for value in values])
                return builder.call(
                    cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{lanes}f32"),
                    values,
                )

            x = splat(args[1])
            b = splat(args[2])
            totals = [
                cgutils.alloca_once_value(builder, ir.Constant(vector, [float(i)] * lanes))
                for i in range(accumulators)
            ]
            with cgutils.for_range(builder, args[0]):
                for total in totals:
                    builder.store(call("llvm.fma", vector, builder.load(total), x, b), total)
            result = builder.load(totals[0])
            # Every accumulator is used, or LLVM would remove it.
            for total in totals[1:]:
                result = builder.fadd(result, builder.load(total))
            return call("llvm.vector.reduce.fadd", number, ir.Constant(number, 0.0), result)

        return types.float32(types.int64, types.float32, types.float32), generate

    @njit(nogil=True)
    def run(rounds, x, b):
        return spin(rounds, x, b)

    return run


class Probe:
    """Multiply-adds per second, of one thread or of several at once."""

    def __init__(self) -> None:
        self._x = np.float32(0.5)
        self._b = np.float32(1)
        loops = {shape: _multiply_adds(*shape) for shape in SHAPES}
        for loop in loops.values():
            loop(1, self._x, self._b)
        speeds = dict.fromkeys(SHAPES, 0.0)
        for _ in range(20):
            for shape, loop in loops.items():
                speeds[shape] = max(speeds[shape], self._speed(loop, shape, ROUNDS))
        self.shape = max(speeds, key=lambda shape: speeds[shape])
        self._loop = loops[self.shape]
        self._fastest = speeds[self.shape]

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
