"""Which cluster a command talks to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.processes.background import BackgroundProcess, StateDirectory
from trainer.kube.rest.connection import ConnectionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

Kubeconfig = Annotated[Path | None, typer.Option(help="Kubeconfig file of the cluster.")]
Context = Annotated[str | None, typer.Option(help="Context in the kubeconfig.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Namespace; default: that of the context.")]


def current_cluster(
    kubeconfig: Path | None,
    context: str | None,
    environment: Mapping[str, str] = os.environ,
    *,
    pod_first: bool = False,
) -> ConnectionOptions:
    """The cluster of `--kubeconfig`, else of $KUBECONFIG, else that of `trainer up`, else kubectl's default.

    With `pod_first`, for commands that pods run, the cluster of the pod that we run in comes before that of `trainer
    up`: pods of a dev cluster see the home directory of its user, and the state of `trainer up` in it. Default: no,
    for people work in pods, too.

    Raises:
        BadInputError: there is no such kubeconfig.
        CommandError: the cluster of `trainer up` has crashed.
    """
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise BadInputError(f"--kubeconfig: there is no file {kubeconfig}")
        return ConnectionOptions(kubeconfig=kubeconfig, context=context)
    is_decided = environment.get("KUBECONFIG") or (pod_first and environment.get("KUBERNETES_SERVICE_HOST"))
    if not is_decided:
        state = StateDirectory.of_user(environment)
        background = BackgroundProcess("cluster", state)
        if background.running() is not None:
            return ConnectionOptions(kubeconfig=state.kubeconfig, context=context)
        crash = background.crash()
        if crash is not None:  # another cluster is not what its user expects to work on
            raise CommandError(
                f"the cluster of `trainer up` {crash}: start it again (trainer up), forget it (trainer down), "
                "or name another one with --kubeconfig"
            )
    return ConnectionOptions(context=context)
