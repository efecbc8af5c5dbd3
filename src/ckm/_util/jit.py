"""How hot loops are compiled: in little time, once, and free of the interpreter's lock.

What makes numba slow to compile, and is avoided in compiled code: `np.empty` and `np.zeros` (memory
is taken in Python), `np.dot` (products of matrices are taken in Python), assigning to slices (2 s
for the message of an error that does not happen), a function for each of many types of arguments.
"""

from collections.abc import Callable
from typing import Any

from numba import njit

_Decorator = Callable[[Callable[..., Any]], Any]

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_PART: dict[str, Any] = _OPTIONS | {"no_cpython_wrapper": True, "forceinline": True}

# Called from Python: the only ones that are kept on disk.
entry: _Decorator = njit(**_OPTIONS, cache=True)
# Called from compiled code, and part of what calls them: a wrapper and a file of their own would
# only take time.
leaf: _Decorator = njit(**_PART)
# The same, where sums may be reordered so that they vectorise: the same bits each time, but not on
# every machine.
summing: _Decorator = njit(**_PART, fastmath=True)
