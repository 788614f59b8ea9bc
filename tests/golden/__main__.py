"""Writes the expected objects of all examples anew; `git diff` then shows what has changed."""

from __future__ import annotations

from tests.golden.rendering import EXPECTED, examples, expected, render


def main() -> None:
    """Replace what is in `expected`."""
    for stale in EXPECTED.rglob("*.yaml"):
        stale.unlink()
    for example in examples():
        file = expected(example)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(render(example), encoding="utf-8")


main()
