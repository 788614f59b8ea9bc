"""The option `--name` of the commands for clusters on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from trainer.cli.processes.state_directory import existing_clusters


def cluster_names(incomplete: str) -> list[str]:
    """What a shell offers."""
    return [each.name for each in existing_clusters() if each.name.startswith(incomplete)]


Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the cluster, which has the context trainer-NAME.",
        autocompletion=cluster_names,
    ),
]
ExistingName = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="Name of the cluster. Default: the current one.", autocompletion=cluster_names
    ),
]
