"""Benchmarks in sections that can be run by themselves, timed by a clock that can be chosen."""

import argparse
import time
from collections.abc import Callable
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import mnist
from benchmarks.harness import mnist_option, sections_option


class Clock:
    """How contenders are timed: by the wall with every core, or in processor time of one thread."""

    def __init__(self, kind: str) -> None:
        self.n_jobs = 1 if kind == "cpu" else None
        self._now = time.process_time if kind == "cpu" else time.perf_counter

    def best(
        self, rounds: int, contenders: dict[str, Callable[[], Any]]
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """The best seconds of each contender, and its last result; they take turns."""
        seconds = dict.fromkeys(contenders, float("inf"))
        results = dict[str, Any]()
        with threadpool_limits(self.n_jobs):
            for _ in range(rounds):
                for name, work in contenders.items():
                    began = self._now()
                    results[name] = work()
                    seconds[name] = min(seconds[name], self._now() - began)
        return seconds, results


Section = Callable[[argparse.Namespace, Clock], None]


def run_sections(parser: argparse.ArgumentParser, sections: dict[str, Section]) -> None:
    """Run the sections that the command line asks for, of a benchmark whose clock can be chosen."""
    mnist_option(parser)
    sections_option(parser, tuple(sections))
    parser.add_argument(
        "--clock",
        choices=("wall", "cpu"),
        default="wall",
        help="seconds on the wall with every core, or processor seconds of one thread",
    )
    arguments = parser.parse_args()
    mnist.name_source(arguments.mnist)
    for name in arguments.sections:
        sections[name](arguments, Clock(arguments.clock))
