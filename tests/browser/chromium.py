"""A Chromium for the tests: one that is installed, else Debian's package, else the one of npm's
`@sparticuz/chromium`. As a script it prints which.

    python tests/browser/chromium.py
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "@sparticuz/chromium"
# Unpacks the browser, and prints where it is.
UNPACK = f"import('{PACKAGE}').then(m => m.default.executablePath()).then(console.log)"


class Chromium(NamedTuple):
    """A browser: its program, and where it is from."""

    path: str
    origin: str


def installed() -> Chromium | None:
    """A browser on the path, or the one that CKM_CHROMIUM names."""
    for name in (os.environ.get("CKM_CHROMIUM", ""), *NAMES):
        path = shutil.which(name) if name else None
        if path:
            return Chromium(path, "which is installed")
    return None


def from_debian() -> Chromium | None:
    """Debian's package, where this process may install it."""
    if os.getuid() != 0 or shutil.which("apt-get") is None:
        return None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
    # Another apt-get, which may be installing Java, is waited for.
    options = ["-qq", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300"]
    install = ["apt-get", "install", *options, "chromium"]
    if subprocess.run(install, **quiet).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(install, **quiet)
    path = shutil.which("chromium")
    return None if path is None else Chromium(path, "Debian's package, installed now")


def from_npm() -> Chromium | None:
    """The browser of an npm package, kept in the folder of temporary files."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return None
    folder = Path(tempfile.gettempdir()) / f"ckm-chromium-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", PACKAGE]
    if subprocess.run(install, cwd=folder, check=False).returncode != 0:
        return None
    unpack = ["node", "--input-type=module", "-e", UNPACK]
    printed = subprocess.run(unpack, cwd=folder, capture_output=True, text=True, check=False)
    path = printed.stdout.strip()
    return Chromium(path, f"of npm's {PACKAGE}") if Path(path).is_file() else None


def find_chromium() -> Chromium:
    """The first browser that there is; an error that says what to do if there is none."""
    found = installed() or from_debian() or from_npm()
    if found is None:
        raise FileNotFoundError(
            "No Chromium was found, and none could be installed. Install one "
            "(apt-get install chromium), or name its program with CKM_CHROMIUM=/path/to/it."
        )
    return found


def main() -> None:
    """Say which browser the tests will use."""
    found = find_chromium()
    version = subprocess.run([found.path, "--version"], capture_output=True, text=True, check=False)
    print(f"Browser: {found.path} ({found.origin}); {version.stdout.strip() or 'no version'}")


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(str(error))
