"""`trainer.submit`: what `trainer run SCRIPT` does, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from trainer.cli.console import say
from trainer.cli.current_cluster import current_cluster, open_cluster
from trainer.cli.run.options import ScriptOptions
from trainer.cli.run.run import follow_on_screen
from trainer.cli.run.script import prepare_script
from trainer.cli.run.submission import submit_script
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import key_of, name_of, namespace_of
from trainer.kube.rest.connection import ConnectionOptions


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A TrainJob that `submit` has created."""

    name: str
    namespace: str
    state: str = ""
    """How it has ended, `Complete` or `Failed`; empty when it was not followed to its end, or has been deleted."""


def submit(
    script: str | os.PathLike[str],
    *arguments: str,
    nodes: int | None = None,
    gpus: int | str | None = None,
    processes: int | None = None,
    resources: Mapping[str, str] | None = None,
    runtime: str | None = None,
    image: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    code_from: str | None = None,
    env: Mapping[str, str] | None = None,
    secret_env: Mapping[str, str] | None = None,
    name: str | None = None,
    namespace: str | None = None,
    queue: str | None = None,
    suspend: bool = False,
    follow: bool = False,
    timeout: float | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
) -> SubmittedJob:
    """Train with a script on the current cluster, as `trainer run SCRIPT` does.

        job = trainer.submit("train.py", "--epochs", "3", nodes=2, gpus=8, follow=True)

    It can be called where an event loop runs, such as in a notebook, and blocks.

    Args:
        script: the Python file, or with `code_from` its path in the repository.
        arguments: of the script.
        nodes: default: those of the runtime.
        gpus: GPUs or other devices of each node, such as 8 or `amd.com/gpu:8`; a number alone is of the device that the
            runtime names, else of nvidia.com/gpu. Default: none.
        processes: on each node. Default: as the runtime.
        resources: of each node, such as `{"memory": "64Gi"}`. Default: none.
        runtime: its name. Default: that of the framework which the script imports.
        image: default: that of the runtime.
        folder: what travels whole. Default: the script, the modules beside it that it imports, and its requirements.
        code_from: a repository that nodes fetch the code from, `git+https://HOST/REPOSITORY@REVISION`.
        env: variables by name. Default: none.
        secret_env: `SECRET:KEY` by the name of the variable. Default: none.
        name: of the TrainJob. Default: made from that of the script.
        namespace: default: that of the context.
        queue: of Kueue. Default: none.
        suspend: create it suspended.
        follow: print its logs and state until it ends.
        timeout: seconds after which it is followed no more. Default: none.
        kubeconfig: default: $KUBECONFIG, the cluster of `trainer up`, or ~/.kube/config, in this order.
        context: of the kubeconfig. Default: its current one.

    Raises:
        trainer.cli.errors.BadInputError: an argument or the code is wrong; the message has the remedy.
        trainer.cli.errors.CommandError: the cluster has refused it.
        trainer.kube.errors.KubeError: the cluster cannot be reached.
    """
    options = ScriptOptions(
        script=os.fspath(script),
        arguments=arguments,
        folder=None if folder is None else Path(folder),
        code_from=code_from,
        runtime=runtime,
        name=name,
        nodes=nodes,
        gpus=None if gpus is None else str(gpus),
        processes=processes,
        resources=_pairs(resources),
        image=image,
        env=_pairs(env),
        secret_env=_pairs(secret_env),
        queue=queue,
        suspend=suspend,
    )
    connection = current_cluster(None if kubeconfig is None else Path(kubeconfig), context)
    # In a thread: notebooks have a running loop in this one.
    with start_blocking_portal() as portal:
        return portal.call(_submit, connection, options, namespace, follow and not suspend, timeout)


def _pairs(values: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in (values or {}).items())


async def _submit(
    connection: ConnectionOptions,
    options: ScriptOptions,
    namespace: str | None,
    is_followed: bool,
    timeout: float | None,
) -> SubmittedJob:
    async with open_cluster(connection) as cluster:
        job = await prepare_script(cluster, options, namespace or cluster.namespace)
        if is_followed:
            say(f"packed {job.description}")
        created = await submit_script(cluster.client, job, is_quiet=not is_followed)
        state = ""
        if is_followed:
            clock = SystemClock()
            async with move_on_after(clock, timeout):
                outcome = (await follow_on_screen(cluster.client, [created], clock))[key_of(created)]
                state = "" if outcome.state is None else outcome.state.word
        return SubmittedJob(name_of(created), namespace_of(created), state)
