"""`trainer sweep`: submit a sweep over the parameters of a script, and follow it to its best trial."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from trainer.api.optimization import MOST_TRIALS
from trainer.cli.commands import Panel
from trainer.cli.console import note, output, say
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.options import Context, Kubeconfig, Namespace, cluster_options
from trainer.cli.run.options import (
    Arguments,
    Checkpoints,
    CodeFrom,
    DryRun,
    Folder,
    Gpus,
    Image,
    MaxRestarts,
    Nodes,
    PrintAs,
    Processes,
    Queue,
    ResourceAmounts,
    RuntimeName,
    Script,
    ScriptOptions,
    SecretVariables,
    StallAfter,
    Timeout,
    Variables,
)
from trainer.cli.run.sweep_api import Search
from trainer.kube.clock import SystemClock, move_on_after
from trainer.kube.objects import Object, name_of, namespace_of
from trainer.kubernetes_yaml import dump, join
from trainer_sweeps.api.optimizationjob import State
from trainer_sweeps.commands.follow import follow_to_end
from trainer_sweeps.commands.optimization_job import USUAL_TRIALS
from trainer_sweeps.commands.parameters import parse_options
from trainer_sweeps.commands.submission import prepare_sweep

_SEARCH = "What is searched"
_TRIALS = "The trials"

Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUES",
        help="Parameter and its values: 'lr=log(1e-5,1e-1)', 'x=uniform(0,1)', 'depth=int(1,8)', 'n=logint(1,100)', "
        "'bs=choice(16,32,64)', or without quotes lr=log:1e-5,1e-1. May be given several times.",
        rich_help_panel=_SEARCH,
    ),
]
Minimize = Annotated[
    str | None,
    typer.Option(metavar="METRIC", help="Metric that is better the smaller it is.", rich_help_panel=_SEARCH),
]
Maximize = Annotated[
    str | None,
    typer.Option(metavar="METRIC", help="Metric that is better the greater it is.", rich_help_panel=_SEARCH),
]
AggregateOption = Annotated[
    Literal["last", "min", "max"] | None,
    typer.Option("--aggregate", help="Which value of a trial's curve counts; default: last.", rich_help_panel=_SEARCH),
]
Trials = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_TRIALS,
        metavar="N",
        help=f"Trials, those that fail or are pruned included; default: {USUAL_TRIALS}, or all of a grid.",
        rich_help_panel=_SEARCH,
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_TRIALS, metavar="N", help="Trials that run at once; default: 1.", rich_help_panel=_SEARCH
    ),
]
AlgorithmOption = Annotated[
    Literal["tpe", "random", "grid", "gp", "cmaes"] | None,
    typer.Option("--algorithm", help="How parameters are chosen; default: tpe.", rich_help_panel=_SEARCH),
]
Seed = Annotated[
    int | None,
    typer.Option(metavar="N", help="The same seed and results give the same trials.", rich_help_panel=_SEARCH),
]
StartupTrials = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MOST_TRIALS,
        metavar="N",
        help="Trials that are drawn at random before tpe, gp or cmaes begin; default: 10.",
        rich_help_panel=_SEARCH,
    ),
]
Prune = Annotated[
    Literal["asha", "median"] | None,
    typer.Option(help="How hopeless trials are stopped; default: none is.", rich_help_panel=_SEARCH),
]
Warmup = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="STEPS", help="With --prune: steps before which no trial is stopped.", rich_help_panel=_SEARCH
    ),
]
IntervalOption = Annotated[
    int | None,
    typer.Option(
        "--interval", min=1, metavar="STEPS", help="With --prune: steps between decisions.", rich_help_panel=_SEARCH
    ),
]
Reduction = Annotated[
    int | None,
    typer.Option(
        min=2, max=100, metavar="N", help="With --prune asha: one of N goes on from a rung.", rich_help_panel=_SEARCH
    ),
]
MaxFailed = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Fail when more trials than this have failed; default: go on.",
        rich_help_panel=_SEARCH,
    ),
]
SweepFollow = Annotated[
    bool, typer.Option("--follow/--no-follow", help="Whether to keep running until the sweep ends.")
]
SweepName = Annotated[str | None, typer.Option("--name", help="Name of the sweep; default: that of the script.")]
SweepSuspend = Annotated[
    bool, typer.Option("--suspend", help="Create it suspended: trainer resume sweep NAME starts it.")
]


def sweep(
    script: Script = None,
    arguments: Arguments = None,
    *,
    param: Parameters = None,
    minimize: Minimize = None,
    maximize: Maximize = None,
    aggregate: AggregateOption = None,
    trials: Trials = None,
    parallel: Parallel = None,
    algorithm: AlgorithmOption = None,
    seed: Seed = None,
    startup_trials: StartupTrials = None,
    prune: Prune = None,
    warmup: Warmup = None,
    interval: IntervalOption = None,
    reduction: Reduction = None,
    max_failed: MaxFailed = None,
    name: SweepName = None,
    follow: SweepFollow = True,
    timeout: Timeout = None,
    suspend: SweepSuspend = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespace = None,
    nodes: Nodes = None,
    gpus: Gpus = None,
    processes: Processes = None,
    resource: ResourceAmounts = None,
    runtime: RuntimeName = None,
    image: Image = None,
    folder: Folder = None,
    code_from: CodeFrom = None,
    env: Variables = None,
    secret_env: SecretVariables = None,
    queue: Queue = None,
    max_restarts: MaxRestarts = None,
    stall_after: StallAfter = None,
    checkpoints: Checkpoints = None,
    dry_run: DryRun = False,
    print_as: PrintAs = None,
) -> None:
    """Search the parameters with which a script ends best: trials, each a TrainJob, followed to the best one.

    trainer sweep train.py --param 'lr=log(1e-5,1e-1)' --minimize val_loss --trials 20 --parallel 4 -- --lr {lr}

    In the arguments of the script {lr} stands for the value of a parameter. Without it the script reads the parameters
    by `from report import parameters`, or the variable KUBEFLOW_TRAINER_OPT_LR. It reports the metric as it reports
    progress, such as by a line `loss=0.31`. What is with a script is as for `trainer run`, for each trial.

    Ctrl-C detaches: the sweep goes on, and `trainer get sweep NAME --watch` follows it again.

    Exit code: 0 when the sweep is Complete, 1 when it Failed or was deleted, 2 for bad input, 124 for a timeout.
    """
    if not script:
        raise BadInputError(f"name a script to train with, such as: {_EXAMPLE}")
    parameters = parse_options(param or ())
    search = Search(
        space={},
        metric=_metric(minimize, maximize),
        direction="minimize" if maximize is None else "maximize",
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
    options = ScriptOptions(
        script=script,
        arguments=tuple(arguments or ()),
        folder=folder,
        code_from=code_from,
        runtime=runtime,
        name=name,
        nodes=nodes,
        gpus=gpus,
        processes=processes,
        resources=tuple(resource or ()),
        image=image,
        env=tuple(env or ()),
        secret_env=tuple(secret_env or ()),
        queue=queue,
        max_restarts=max_restarts,
        stall_after=stall_after,
        checkpoints=checkpoints,
    )
    prints = dry_run or print_as is not None

    async def send(cluster: ConnectedCluster) -> Object | None:
        prepared = await prepare_sweep(cluster, options, search, parameters, namespace or cluster.namespace)
        (note if prints else say)(f"packed {prepared.description}")
        created = None if dry_run else await prepared.submit(cluster, is_quiet=prints)
        if prints:
            output().file.write(join(dump(document.obj) for document in (prepared.config_map, prepared.sweep)))
        elif suspend:
            named = f"{name_of(prepared.sweep.obj)} -n {namespace_of(prepared.sweep.obj)}"
            say(f"{name_of(prepared.sweep.obj)} is suspended: trainer resume sweep {named} starts it")
        return created if follow and not (prints or suspend) else None

    raise typer.Exit(_submit_and_follow(kubeconfig, context, send, timeout, script))


_EXAMPLE = "trainer sweep train.py --param 'lr=log(1e-5,1e-1)' --minimize val_loss"


def _metric(minimize: str | None, maximize: str | None) -> str:
    if minimize is not None and maximize is not None:
        raise BadInputError("--minimize and --maximize: name one metric: a sweep has a single objective")
    metric = minimize if minimize is not None else maximize
    if not metric:
        raise BadInputError("name the metric: --minimize val_loss, or --maximize accuracy")
    return metric


def _submit_and_follow(
    kubeconfig: Path | None,
    context: str | None,
    send: Callable[[ConnectedCluster], Awaitable[Object | None]],
    timeout: float | None,
    script: str,
) -> int:
    """Follow the sweep that `send` has submitted, until it has ended, the time is up or the user detaches."""
    submitted: list[Object] = []
    target = cluster_options(kubeconfig, context)

    async def run(cluster: ConnectedCluster) -> int:
        created, clock, view = await send(cluster), SystemClock(), None
        if created is None:
            return ExitCode.OK
        submitted.append(created)
        async with move_on_after(clock, timeout) as scope:
            view = await follow_to_end(cluster, created, output(), clock, script=script)
        if scope.cancelled_caught:
            return ExitCode.TIMEOUT
        if view is None:
            note(f"the sweep {name_of(created)} was deleted")
            return ExitCode.FAILED
        if view.state == State.COMPLETE:
            return ExitCode.OK
        note(f"trainer explain sweep {view.name} -n {view.namespace}{target} says what to do")
        return ExitCode.FAILED

    code = run_on(current_cluster(kubeconfig, context), run)
    if submitted and code >= ExitCode.TIMEOUT:
        name, where = name_of(submitted[0]), f"-n {namespace_of(submitted[0])}{target}"
        reason = f"not finished after {timeout:g} s" if code == ExitCode.TIMEOUT else "detached"
        say(f"{reason}: the cluster goes on with {name} (trainer get sweep {name} --watch {where} follows it again)")
    return code


app = typer.Typer(rich_help_panel=Panel.TRY, add_completion=False)
app.command("sweep")(sweep)
