"""Options that several commands have."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from trainer.cli.completion import context_names, namespace_names

Kubeconfig = Annotated[Path | None, typer.Option(help="Kubeconfig file of the cluster.")]
Context = Annotated[str | None, typer.Option(help="Context in the kubeconfig.", autocompletion=context_names)]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace; default: that of the context.", autocompletion=namespace_names),
]
_API_VERSION = typer.Option(help="Version of TrainJobs and runtimes; v1alpha1 is that of Kubeflow Trainer (Go).")
ApiVersion = Annotated[Literal["v1alpha1", "v2alpha1"], _API_VERSION]
WantedApiVersion = Annotated[Literal["v1alpha1", "v2alpha1"] | None, _API_VERSION]


def cluster_options(kubeconfig: Path | None, context: str | None) -> str:
    """The options that lead to a cluster, each after a blank, to be appended to a command line."""
    given = {"--kubeconfig": kubeconfig, "--context": context}
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None)
