"""What experiments share with benchmarks/: one door, so that no other file need know where those
modules live.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import mnist_spectral
from common import Outcome, console, environment, locked, replacing, show, work_all

__all__ = [
    "Outcome",
    "console",
    "environment",
    "locked",
    "mnist_spectral",
    "replacing",
    "show",
    "work_all",
]
