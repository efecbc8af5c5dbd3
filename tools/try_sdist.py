"""Unpack an sdist and run its fast tests, from its own files alone.

    python tools/try_sdist.py dist/compressive_kmeans-*.tar.gz [arguments of pytest]

Packages are those of the environment that runs this; the project itself is the unpacked one.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

# The tests of `make test`; those of engines and of the browser have targets of their own.
DEFAULT = (
    "-q",
    "-n",
    "auto",
    "--dist",
    "loadgroup",
    "-m",
    "not slow",
    "--ignore=tests/engines",
    "--ignore=tests/browser",
)


def main() -> None:
    """Unpack the file that is named first, and run pytest in it."""
    name, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        with tarfile.open(name) as archive:
            archive.extractall(temporary, filter="data")
        (root,) = Path(temporary).iterdir()
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(root / "src")}
        done = subprocess.run([*command, *(arguments or DEFAULT)], cwd=root, env=environment)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
