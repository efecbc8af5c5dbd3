"""Try a wheel as its users meet it: in an environment with nothing else, on a path without git and
without a compiler.

    python tools/try_wheel.py dist/compressive_kmeans-*.whl

Prints what each step took, and ends with an error at the first that fails.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

STEPS = (
    ("ckm", "--version"),
    ("ckm", "demo", "--rows", "20000"),
    ("ckm", "fit", "rows.csv", "-k", "3", "-o", "centroids.csv"),
    ("ckm", "predict", "rows.csv", "-c", "centroids.csv", "-o", "labels.npy"),
    ("python", "-c", "from ckm import CompressiveKMeans; print(CompressiveKMeans(3))"),
)
# Everything else of the distribution is for developers.
EXPECTED_FOLDERS = {"ckm", "dist-info"}
# A wheel of Python code alone: 763 kB for 0.2.0.
MAX_BYTES = 2_000_000


def check_content(wheel: Path) -> None:
    """The package and its metadata, and neither tests nor tools."""
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0].rsplit(".", 1)[-1] for name in names}
    if folders != EXPECTED_FOLDERS or "ckm/py.typed" not in names:
        sys.exit(f"{wheel.name} holds {sorted(folders)}, not the package and its metadata.")
    if wheel.stat().st_size > MAX_BYTES:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size:,} bytes; {MAX_BYTES:,} are expected.")


def write_rows(path: Path) -> None:
    """A small table of three clusters, without any package."""
    lines = [f"{10 * (i % 3) + i % 7 / 7},{5 * (i % 3) + i % 5 / 5}" for i in range(3000)]
    path.write_text("\n".join(["east,north", *lines]) + "\n", encoding="utf-8")


def run(command: list[str], folder: Path, path: Path) -> None:
    """Run a command with one folder of programs, and say how long it took."""
    start = time.perf_counter()
    environment = {"PATH": str(path), "HOME": str(folder), "LANG": "C.UTF-8"}
    # Where pip looks for packages is the user's affair.
    environment |= {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
    command = [str(path / command[0]), *command[1:]]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    shown = " ".join([Path(command[0]).name, *command[1:]])
    print(f"{time.perf_counter() - start:6.1f} s  {shown}", flush=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}\n{shown} failed with status {done.returncode}.")


def main() -> None:
    """Install the wheel that is named on the command line, and use it."""
    (name,) = sys.argv[1:]
    wheel = Path(name).resolve()
    check_content(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment" / "bin"
        write_rows(folder / "rows.csv")
        install = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*install, "--only-binary", ":all:", str(wheel)], folder, programs)
        for step in STEPS:
            run(list(step), folder, programs)


if __name__ == "__main__":
    main()
