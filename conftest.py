"""Examples in modules that need torch are tried where it is installed."""

from importlib.util import find_spec

_NEED_TORCH = [f"kernels/{name}.py" for name in ("torch", "plain", "card", "lanes", "triton")] + ["runners/card.py", "nearest_card.py"]

collect_ignore = [] if find_spec("torch") else [f"src/ckm/{name}" for name in _NEED_TORCH]
