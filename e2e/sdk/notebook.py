"""Runs the code cells of a notebook in their order, as Jupyter does: `python -m e2e.sdk.notebook FILE`."""

from __future__ import annotations

import json
import linecache
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(Path(sys.argv[1]).read_text())["cells"]):
        if cell["cell_type"] == "code":
            source, file = "".join(cell["source"]), f"/notebook/cell_{number}.py"
            # The SDK asks for the source of functions.
            linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
            exec(compile(source, file, "exec"), names)


if __name__ == "__main__":
    main()
