"""Commands of the documentation, run as they stand."""

import subprocess
import sys
from pathlib import Path


def run_shell(code: str, folder: Path) -> None:
    """Run lines of a shell in a folder, with this `ckm`."""
    main = "from ckm._cli.app import main; main()"
    command = f"ckm() {{ '{sys.executable}' -c '{main}' \"$@\"; }}\nset -e -o pipefail\n{code}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
