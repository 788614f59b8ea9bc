"""`trainer sweep`."""

from __future__ import annotations

import typer

from trainer.cli.commands import Panel

app = typer.Typer(rich_help_panel=Panel.TRY, add_completion=False)
