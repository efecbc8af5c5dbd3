"""Spark's parent of Python workers, for tests of many tiny tasks: it imports ckm once, before it
forks, and leaves what is imported out of the garbage collection after each task.
"""

import gc

from pyspark.daemon import manager

import ckm._kernels.cpu.kernel
import ckm._kmeans.assign
import ckm._sketching.jobs
import ckm._sources.arrow  # noqa: F401

if __name__ == "__main__":
    gc.freeze()
    manager()
