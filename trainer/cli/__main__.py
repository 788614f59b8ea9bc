"""`python -m trainer.cli` is the `trainer` command."""

from __future__ import annotations

from trainer.cli.main import main

if __name__ == "__main__":
    main()
