"""`trainer.train`, `trainer.submit` and `trainer.job`: what `trainer run SCRIPT` does, from Python.

The functions of `sweep_api` are here as well: `trainer` takes all that scripts and notebooks use from one place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainer.cli.console import say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster
from trainer.cli.errors import BadInputError
from trainer.cli.jobs.find import find_train_job
from trainer.cli.run.function import function_call
from trainer.cli.run.options import ScriptOptions, pairs
from trainer.cli.run.script import prepare_script
from trainer.cli.run.submission import submit_script
from trainer.cli.run.submitted_job import JobStatus, MetricSample, SubmittedJob, TrainingFailedError, on_cluster
from trainer.cli.run.sweep_api import (
    SubmittedSweep,
    SweepFailedError,
    SweepStatus,
    SweepTrial,
    integers,
    log,
    sweep,
    uniform,
)
from trainer.kube.clock import SystemClock, move_on_after

__all__ = [
    "JobStatus",
    "MetricSample",
    "SubmittedJob",
    "SubmittedSweep",
    "SweepFailedError",
    "SweepStatus",
    "SweepTrial",
    "TrainingFailedError",
    "integers",
    "job",
    "log",
    "submit",
    "sweep",
    "train",
    "uniform",
]


def train(
    function: Callable[..., object],
    arguments: Mapping[str, object] | None = None,
    *,
    packages: Sequence[str] = (),
    nodes: int | None = None,
    gpus: int | str | None = None,
    processes: int | None = None,
    resources: Mapping[str, str] | None = None,
    runtime: str | None = None,
    image: str | None = None,
    env: Mapping[str, str] | None = None,
    secret_env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    name: str | None = None,
    namespace: str | None = None,
    queue: str | None = None,
    max_restarts: int | None = None,
    stall_after: str | None = None,
    checkpoints: str | None = None,
    suspend: bool = False,
    follow: bool = False,
    timeout: float | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
) -> SubmittedJob:
    """Train with a function on the current cluster: each process of each node calls it.

        def train_mnist(epochs, lr=0.1):
            import torch
            ...

        job = trainer.train(train_mnist, {"epochs": 3}, packages=["torchvision"], nodes=2, gpus=8)
        job.wait()

    The source of the function travels, and the modules beside its file, or beside a notebook, that it imports. What it
    uses it must import or define itself, or take as an argument. What it returns is lost: write it to storage.
    This blocks until the TrainJob is created, also in a notebook, where an event loop runs.

    Args:
        function: written with def, outside of classes and other functions.
        arguments: by name; plain values, as JSON has them, and tuples, sets and bytes. Default: none.
        packages: installed before the start, each as in a requirements.txt, such as `transformers>=5`. Default: none.
        nodes: default: those of the runtime.
        gpus: GPUs or other devices of each node, such as 8 or `amd.com/gpu:8`; see `submit`. Default: none.
        processes: on each node. Default: as the runtime.
        resources: of each node, such as `{"memory": "64Gi"}`. Default: none.
        runtime: its name. Default: that of the framework which the function imports.
        image: default: that of the runtime.
        env: variables by name. Default: none.
        secret_env: `SECRET:KEY` by the name of the variable. Default: none.
        labels: of the TrainJob. Default: none.
        name: of the TrainJob. Default: made from that of the function.
        namespace: default: that of the context.
        queue: of Kueue. Default: none.
        max_restarts: how often it starts again after a failure; evictions and the like do not count where the runtime
            starts again after them. Default: what the runtime says.
        stall_after: time without progress after which it is Stalled, such as `10m`, `0s` for never. Default: as the
            manager is configured.
        checkpoints: the claim that keeps its checkpoints, `CLAIM` or `CLAIM/PATH`; empty for none. Default: that of the
            runtime, if any.
        suspend: create it suspended.
        follow: print its logs and state until it ends.
        timeout: seconds after which it is followed no more. Default: none.
        kubeconfig: default: $KUBECONFIG, the cluster of `trainer up`, or ~/.kube/config, in this order.
        context: of the kubeconfig. Default: its current one.

    Raises:
        trainer.cli.errors.BadInputError: the function cannot travel, or an argument is wrong; has the remedy.
        trainer.cli.errors.CommandError: the cluster has refused it.
        trainer.kube.errors.KubeError: the cluster cannot be reached.
    """
    if isinstance(packages, str):
        raise BadInputError(f"packages: must be a list, such as [{packages!r}]")
    call = function_call(function, arguments or {}, tuple(packages))
    options = ScriptOptions(
        script=f"{call.name}.py",
        function=call,
        runtime=runtime,
        name=name,
        nodes=nodes,
        gpus=None if gpus is None else str(gpus),
        processes=processes,
        resources=pairs(resources),
        image=image,
        env=pairs(env),
        secret_env=pairs(secret_env),
        labels=tuple((labels or {}).items()),
        queue=queue,
        max_restarts=max_restarts,
        stall_after=None if stall_after is None else str(stall_after),
        checkpoints=checkpoints,
        suspend=suspend,
    )
    return _submit(options, namespace, kubeconfig, context, follows=follow, timeout=timeout)


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
    labels: Mapping[str, str] | None = None,
    name: str | None = None,
    namespace: str | None = None,
    queue: str | None = None,
    max_restarts: int | None = None,
    stall_after: str | None = None,
    checkpoints: str | None = None,
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
        labels: of the TrainJob. Default: none.
        name: of the TrainJob. Default: made from that of the script.
        namespace: default: that of the context.
        queue: of Kueue. Default: none.
        max_restarts: how often it starts again after a failure; evictions and the like do not count where the runtime
            starts again after them. Default: what the runtime says.
        stall_after: time without progress after which it is Stalled, such as `10m`, `0s` for never. Default: as the
            manager is configured.
        checkpoints: the claim that keeps its checkpoints, `CLAIM` or `CLAIM/PATH`; empty for none. Default: that of the
            runtime, if any.
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
        resources=pairs(resources),
        image=image,
        env=pairs(env),
        secret_env=pairs(secret_env),
        labels=tuple((labels or {}).items()),
        queue=queue,
        max_restarts=max_restarts,
        stall_after=None if stall_after is None else str(stall_after),
        checkpoints=checkpoints,
        suspend=suspend,
    )
    return _submit(options, namespace, kubeconfig, context, follows=follow, timeout=timeout)


def job(
    name: str,
    *,
    namespace: str | None = None,
    kubeconfig: str | os.PathLike[str] | None = None,
    context: str | None = None,
) -> SubmittedJob:
    """A TrainJob that was submitted before, by whomever.

    Raises:
        trainer.cli.errors.GoneError: there is none of this name.
        trainer.kube.errors.KubeError: the cluster cannot be reached.
    """
    connection = current_cluster(None if kubeconfig is None else Path(kubeconfig), context)

    async def find(cluster: ConnectedCluster) -> SubmittedJob:
        return SubmittedJob(connection, await find_train_job(cluster.client, name, namespace or cluster.namespace))

    return on_cluster(connection, find)


def _submit(
    options: ScriptOptions,
    namespace: str | None,
    kubeconfig: str | os.PathLike[str] | None,
    context: str | None,
    *,
    follows: bool,
    timeout: float | None,
) -> SubmittedJob:
    connection = current_cluster(None if kubeconfig is None else Path(kubeconfig), context)
    is_followed = follows and not options.suspend

    async def send(cluster: ConnectedCluster) -> SubmittedJob:
        prepared = await prepare_script(cluster, options, namespace or cluster.namespace)
        if is_followed:
            say(f"packed {prepared.description}")
        created = await submit_script(cluster.client, prepared, is_quiet=not is_followed)
        submitted = SubmittedJob(connection, created)
        if is_followed:
            async with move_on_after(SystemClock(), timeout):
                await submitted.follow_on(cluster.client)
        return submitted

    return on_cluster(connection, send)
