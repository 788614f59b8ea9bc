"""`trainer.sweep`: what `trainer sweep SCRIPT` does, from Python; the distribution of sweeps submits it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol, Self, TypeAlias, runtime_checkable

from trainer.cli.current_cluster import current_cluster
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.kinds import kind_called
from trainer.cli.run.function import FunctionCall, function_call
from trainer.cli.run.options import ScriptOptions, pairs
from trainer.kube.rest.connection import ConnectionOptions

Values: TypeAlias = str | Sequence[object]
"""The values of a parameter: a text such as `log(1e-5,1e-1)`, or a list of choices."""
Algorithm: TypeAlias = Literal["tpe", "random", "grid", "gp", "cmaes"]
Pruning: TypeAlias = Literal["asha", "median"]


def log(least: float, greatest: float) -> str:
    """Positive numbers, each order of magnitude as likely as any other."""
    return f"log({least!r},{greatest!r})"


def uniform(least: float, greatest: float) -> str:
    """Numbers, each as likely as any other."""
    return f"uniform({least!r},{greatest!r})"


def integers(least: int, greatest: int, *, log: bool = False) -> str:
    """Integers, both bounds included; with `log` each order of magnitude is as likely as any other."""
    return f"{'logint' if log else 'int'}({least!r},{greatest!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What a sweep searches, and how; the defaults leave it to the API."""

    space: Mapping[str, Values]
    """By the names of the parameters."""
    metric: str
    direction: str = "minimize"
    aggregate: str | None = None
    """Which value of its curve counts: last, min or max."""
    trials: int | None = None
    parallel: int | None = None
    algorithm: str | None = None
    seed: int | None = None
    startup_trials: int | None = None
    prune: str | None = None
    warmup: int | None = None
    interval: int | None = None
    reduction: int | None = None
    max_failed: int | None = None
    suspend: bool = False


@dataclass(frozen=True, slots=True)
class SweepTrial:
    """One trial of a sweep; a list of them is what `pandas.DataFrame` takes."""

    number: int
    name: str
    """Of its TrainJob: `trainer.job(name)` has its log and metrics."""
    state: str
    """Running, Succeeded, Failed or Pruned."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Numbers, true and false as such, other values as text."""
    value: float | None = None
    """Of the metric; of one that runs or was pruned the last one."""
    message: str = ""
    """Why it has failed or was pruned."""
    started: datetime | None = None
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class SweepStatus:
    """How a sweep is doing."""

    state: str
    """Running, Blocked, Suspended, Complete or Failed; Submitted before a controller has seen it."""
    message: str
    """Why it is blocked, or has failed."""
    trials: int
    """How many it has in all."""
    running: int
    succeeded: int
    failed: int
    pruned: int
    remaining_seconds: float | None
    """Estimated; None while no trial has ended, and afterwards."""


class SweepFailedError(CommandError):
    """A sweep that `SubmittedSweep.wait` has waited for has failed."""


class SubmittedSweep(Protocol):
    """A sweep on a cluster.

    All methods block, also where an event loop runs, such as in a notebook, and each connects to the cluster anew.

    Raises:
        trainer.cli.errors.GoneError: by all methods: it is not in the cluster any more.
        trainer.kube.errors.KubeError: by all methods: the cluster cannot be reached, or refuses.
    """

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    def status(self) -> SweepStatus:
        """How it is doing now."""

    def trials(self) -> list[SweepTrial]:
        """Its trials by number, those that run included."""

    def best(self) -> SweepTrial | None:
        """The trial with the best value so far; None while none has succeeded."""

    def wait(self, timeout: float | None = None, *, follow: bool = False) -> Self:
        """Wait until it is complete, and return it.

        Args:
            timeout: in seconds. Default: none.
            follow: whether its trials are shown meanwhile.

        Raises:
            SweepFailedError: it has failed; the message says why.
            TimeoutError: it has not ended in time, and continues.
        """

    def suspend(self) -> None:
        """Suspend it with its trials, whose pods are deleted.

        Raises:
            CommandError: it has ended.
        """

    def resume(self) -> None:
        """Resume it with its trials; raises what `suspend` does."""

    def delete(self) -> None:
        """Delete it with its trials; returns before they are gone."""


@runtime_checkable
class Sweeps(Protocol):
    """What the distribution of sweeps adds to its `Kind`."""

    def expressions(self, space: Mapping[str, Values]) -> Mapping[str, str]:
        """Python source of the values of the parameters, which the program of a trial evaluates.

        Raises:
            BadInputError: the space is wrong; says what is expected.
        """

    def submit(
        self,
        connection: ConnectionOptions,
        options: ScriptOptions,
        search: Search,
        namespace: str | None,
        *,
        follow: bool,
        timeout: float | None,
    ) -> SubmittedSweep:
        """Submit a sweep; blocks. The arguments are those of `sweep`."""


def sweep(
    program: Callable[..., object] | str | os.PathLike[str],
    space: Mapping[str, Values],
    *,
    metric: str,
    direction: Literal["minimize", "maximize"] = "minimize",
    trials: int | None = None,
    parallel: int | None = None,
    algorithm: Algorithm | None = None,
    seed: int | None = None,
    startup_trials: int | None = None,
    prune: Pruning | None = None,
    warmup: int | None = None,
    interval: int | None = None,
    reduction: int | None = None,
    aggregate: Literal["last", "min", "max"] | None = None,
    max_failed: int | None = None,
    arguments: Mapping[str, object] | Sequence[str] | None = None,
    packages: Sequence[str] = (),
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
) -> SubmittedSweep:
    """Search the parameters with which a function or a script ends best, on the current cluster.

        def train_digits(lr, batch, epochs):
            ...
            report(current_epoch=epoch, eval_metrics={"val_loss": loss})

        sweep = trainer.sweep(
            train_digits, {"lr": trainer.log(1e-5, 1e-1), "batch": [16, 32, 64]}, arguments={"epochs": 5},
            metric="val_loss", trials=20, parallel=4,
        )
        print(sweep.wait().best())

    The function gets the parameters as arguments. A script reads them by `parameters()` of the module `report`, or from
    the environment, or as arguments: `{lr}` in one of them stands for the value.

    Args:
        program: a function as `train` takes it, or a script as `submit` takes it.
        space: the values of each parameter by its name: `log`, `uniform` or `integers` of this package, a list of
            choices, or a text such as `log(1e-5,1e-1)`.
        metric: its name, as the program reports it.
        direction: whether a smaller or a greater value is better.
        trials: how many, those that fail or are pruned included. Default: 20, or all of a grid.
        parallel: how many run at once. Default: 1.
        algorithm: how parameters are chosen. Default: tpe, the tree-structured Parzen estimator of Optuna.
        seed: the same one gives the same trials. Default: another one for each sweep.
        startup_trials: trials that are drawn at random before tpe, gp or cmaes begin. Default: 10.
        prune: how hopeless trials are stopped. Default: none is.
        warmup: steps of a trial before which it is not stopped. Default: of asha 1, of median 0.
        interval: steps between two decisions about a trial. Default: 1.
        reduction: with asha, one of so many trials goes on from a rung. Default: 3.
        aggregate: which value of the curve of a trial counts. Default: the last one.
        max_failed: the sweep fails when more trials than this have failed. Default: it goes on.
        arguments: of a function by name, of a script as a list. Default: none.
        packages: of a function, see `train`. Default: none.
        nodes: of each trial; this and what follows as in `train` and `submit`.
        gpus: of each node.
        processes: on each node.
        resources: of each node.
        runtime: its name.
        image: default: that of the runtime.
        folder: what travels whole with a script.
        code_from: a repository that nodes fetch a script from.
        env: variables by name.
        secret_env: `SECRET:KEY` by the name of the variable.
        labels: of the sweep and its trials.
        name: of the sweep; its trials are called NAME-trial-1 and so on. Default: made from that of the program.
        namespace: default: that of the context.
        queue: of Kueue, in which each trial waits.
        max_restarts: of each trial.
        stall_after: time without progress after which a trial is Stalled.
        checkpoints: the claim that keeps the checkpoints of the trials.
        suspend: create it suspended.
        follow: show its trials until it ends.
        timeout: seconds after which it is followed no more. Default: none.
        kubeconfig: default: $KUBECONFIG, the cluster of `trainer up`, or ~/.kube/config, in this order.
        context: of the kubeconfig. Default: its current one.

    Raises:
        trainer.cli.errors.BadInputError: an argument, the space or the code is wrong; has the remedy.
        trainer.cli.errors.CommandError: the cluster has refused it, or sweeps are not installed.
        trainer.kube.errors.KubeError: the cluster cannot be reached.
    """
    sweeps: object = kind_called("sweep")
    assert isinstance(sweeps, Sweeps)
    search = Search(
        space=space,
        metric=metric,
        direction=direction,
        aggregate=aggregate,
        trials=trials,
        parallel=parallel,
        algorithm=algorithm,
        seed=seed,
        startup_trials=startup_trials,
        prune=prune,
        warmup=warmup,
        interval=interval,
        reduction=reduction,
        max_failed=max_failed,
        suspend=suspend,
    )
    script, call, words = _program(program, arguments, packages, sweeps.expressions(space))
    options = ScriptOptions(
        script=script,
        function=call,
        arguments=words,
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
    )
    connection = current_cluster(None if kubeconfig is None else Path(kubeconfig), context)
    return sweeps.submit(connection, options, search, namespace, follow=follow, timeout=timeout)


def _program(
    program: Callable[..., object] | str | os.PathLike[str],
    arguments: Mapping[str, object] | Sequence[str] | None,
    packages: Sequence[str],
    expressions: Mapping[str, str],
) -> tuple[str, FunctionCall | None, tuple[str, ...]]:
    """The script, the function that runs in its place, and the arguments of a script."""
    if isinstance(packages, str):
        raise BadInputError(f"packages: must be a list, such as [{packages!r}]")
    if callable(program):
        if arguments is not None and not isinstance(arguments, Mapping):
            raise BadInputError("arguments: must be a dict by name, because the program is a function")
        call = function_call(program, arguments or {}, tuple(packages), expressions=expressions)
        return f"{call.name}.py", call, ()
    if packages:
        raise BadInputError("packages: is for functions; what a script requires is in its requirements.txt")
    if isinstance(arguments, Mapping | str):
        raise BadInputError("arguments: must be a list of texts, because the program is a script")
    return os.fspath(program), None, tuple(map(str, arguments or ()))
