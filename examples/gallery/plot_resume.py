"""
Going on after a kill
=====================

A long pass can be stopped at any moment, even by ``kill -9``. With a checkpoint the same call goes
on where it was, and its result has the same bits as that of a pass that was never stopped.

Here a process sketches some files, is killed in the middle, and a second one goes on.
"""

import json
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ckm

FILES = 12
ROWS = 60_000
CLUSTERS = 8

# %%
# Files of rows, in a folder that is removed at the end:

folder = tempfile.TemporaryDirectory()
place = Path(folder.name)
mixture = ckm.datasets.gaussian_mixture(FILES * ROWS, CLUSTERS, 5, separation=10, random_state=0)
for number, rows in enumerate(np.split(mixture.rows, FILES)):
    np.save(place / f"{number}.npy", rows)

# %%
# The job is an ordinary call with a checkpoint, written twenty times a second; once in ten seconds
# is the default. (A large sketch and one thread make the pass long enough to be killed.) On the
# command line: ``ckm sketch '*.npy' -k 8 -o rows.ckm --checkpoint rows.part --resume``.

JOB = """
import sys
import ckm

folder = sys.argv[1]
ckm.sketch(
    folder + "/*.npy", n_clusters=8, sketch_size=2000, n_jobs=1, random_state=0,
    checkpoint=folder + "/rows.part", checkpoint_interval=0.05, resume=True,
).save(folder + "/rows.ckm")
"""
checkpoint = place / "rows.part"


def rows_so_far() -> int:
    """Return the number of rows in the checkpoint, from the header of the file."""
    with checkpoint.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        metadata = json.loads(file.read(size))["__metadata__"]["ckm-checkpoint"]
    return int(json.loads(metadata)["checkpoint"]["rows"])


def run(kill_at: float) -> list[int]:
    """Run the job, kill it once there are so many rows, and return how many each checkpoint had."""
    process = subprocess.Popen([sys.executable, "-c", JOB, folder.name])
    seen = [rows_so_far()] if checkpoint.exists() else [0]
    while process.poll() is None:
        if checkpoint.exists() and rows_so_far() != seen[-1]:
            seen.append(rows_so_far())
            if seen[-1] > kill_at:
                process.kill()
        time.sleep(0.01)
    return seen


# %%
# The first process is killed after a third of the rows, the second after two thirds, and the third
# one comes to the end. No row is counted twice, and none is lost but those since the last
# checkpoint, which are read again.

total = FILES * ROWS
runs = [run(total / 3), run(2 * total / 3), run(float("inf"))]
print("rows in the checkpoint when each process ended:", [f"{seen[-1]:,}" for seen in runs])

# %%
# The result is that of a pass which was never stopped, bit for bit.

resumed = ckm.load(place / "rows.ckm")
never_stopped = ckm.sketch(
    f"{folder.name}/*.npy", n_clusters=CLUSTERS, sketch_size=2000, random_state=0
)
assert resumed == never_stopped
print(f"{resumed.count:,.0f} rows, the same bits")
folder.cleanup()

# %%
# Each bar is a checkpoint that was seen while the processes ran.

figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
position = 0
for number, seen in enumerate(runs):
    heights = np.array(seen[1:]) / 1e6
    places = position + np.arange(len(heights))
    position += len(heights)
    name = ("first process", "second process", "third process")[number]
    axes.bar(places, heights, color=("#2a6f97", "#d98032", "#3a7d44")[number], label=name)
    if number < len(runs) - 1:
        label = "kill -9" if number == 0 else None
        axes.plot(places[-1], heights[-1], "x", color="#d62728", markersize=12, label=label)
axes.axhline(total / 1e6, color="0.5", linestyle="--", linewidth=1)
axes.set(title="A pass that was killed twice", xlabel="checkpoints", ylabel="million rows")
axes.set_xticks([])
axes.legend(frameon=False, loc="upper left")
plt.show()
