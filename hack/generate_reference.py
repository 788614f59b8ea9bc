"""Write docs/reference anew from the code; a test fails while a page is not what this writes.

Run it after a change of what the pages tell of, such as a field, its docstring, an option, a metric or a reason:

    python -m hack.generate_reference
"""

from __future__ import annotations

from pathlib import Path

from hack.reference.pages import PAGES

TARGET = Path(__file__).parents[1] / "docs" / "reference"


def main() -> None:
    """Write all pages."""
    TARGET.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (TARGET / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
