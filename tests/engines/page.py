"""The examples of docs/scaling.md, with files of this machine in the place of a store."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


def run_section(
    title: str, folder: Path, names: dict[str, Any], scheduler: str = ""
) -> dict[str, Any]:
    """Run the Python example of a section, with other addresses, and return its names."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {title}\n")[1].split("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = code.replace("s3://bucket", folder.as_posix())
    code = code.replace("tcp://scheduler:8786", scheduler)
    exec(compile(code, str(PAGE), "exec"), names)
    return names


def write_events(folder: Path) -> None:
    """Write two files of rows in ten clusters."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    rows = 20 * rng.normal(size=(10, 3))[np.arange(2000) % 10] + rng.normal(size=(2000, 3))
    frame = pd.DataFrame(rows, columns=["x", "y", "z"])
    for i in range(2):
        frame[1000 * i : 1000 * (i + 1)].to_parquet(folder / f"{i}.parquet")
