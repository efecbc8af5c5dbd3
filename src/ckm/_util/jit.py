"""How hot loops are compiled: quickly, once, and without the interpreter's lock.

Compiled code avoids what takes numba long to compile: `np.empty` and `np.zeros` (arrays are
allocated in Python), `np.dot` (matrix products are computed in Python), assignments to slices (2 s
for the message of an error that cannot happen), and one function for arguments of many types.
"""

from collections.abc import Callable
from typing import Any

import numba
from numba import njit

from ckm.errors import ParameterError

_Decorator = Callable[[Callable[..., Any]], Any]

if getattr(numba.config, "DISABLE_JIT", False):
    raise ParameterError(
        "The environment variable NUMBA_DISABLE_JIT is set, and the loops of this library must be "
        "compiled; unset it."
    )

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER_OPTIONS: dict[str, Any] = _OPTIONS | {"no_cpython_wrapper": True, "forceinline": True}

# Functions that Python calls, or that compiled code calls without including them: the only ones
# that are cached on disk.
entry: _Decorator = njit(**_OPTIONS, cache=True)
# Functions that only compiled code calls, and that become part of it: a wrapper and a cache file of
# their own would only take time.
leaf: _Decorator = njit(**_INNER_OPTIONS)
# The same, where sums may be reordered so that they vectorise. Results repeat on one machine, but
# may differ in the last bits between machines.
summing: _Decorator = njit(**_INNER_OPTIONS, fastmath=True)
# Functions whose source numba copies into the compiled function that calls them, before it infers
# types: their arguments may be of several types, or None.
inlined: _Decorator = njit(nogil=True, error_model="numpy", inline="always")
