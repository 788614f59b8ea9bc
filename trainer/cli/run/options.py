"""The options of `trainer run`, and those that `trainer.submit` shares with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from trainer.cli.completion import claim_names, runtime_names
from trainer.cli.run.function import FunctionCall

_SCRIPT = "With a script"

Script = Annotated[
    str | None, typer.Argument(metavar="SCRIPT", help="Python script to train with.", show_default=False)
]
Arguments = Annotated[
    list[str] | None, typer.Argument(metavar="[-- ARGS]", help="Arguments of the script.", show_default=False)
]
File = Annotated[
    str | None, typer.Option("--file", "-f", help="YAML file with TrainJobs and what they need; - is standard input.")
]
Follow = Annotated[bool, typer.Option("--follow/--no-follow", help="Whether to keep running until the TrainJobs end.")]
Timeout = Annotated[
    float | None, typer.Option(min=0, metavar="SECONDS", help="Stop following after this time, with exit code 124.")
]
Nodes = Annotated[
    int | None, typer.Option(min=1, help="Nodes; default: those of the runtime.", rich_help_panel=_SCRIPT)
]
Gpus = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|RESOURCE:NUMBER",
        help="GPUs or other devices of each node, such as 8 or amd.com/gpu:8; default: the device that the runtime "
        "names, else nvidia.com/gpu.",
        rich_help_panel=_SCRIPT,
    ),
]
Processes = Annotated[
    int | None,
    typer.Option("--procs", min=1, help="Processes on each node; default: as the runtime.", rich_help_panel=_SCRIPT),
]
ResourceAmounts = Annotated[
    list[str] | None,
    typer.Option(
        "--resource",
        metavar="NAME=AMOUNT",
        help="Resource of each node, such as memory=64Gi; may be given several times.",
        rich_help_panel=_SCRIPT,
    ),
]
RuntimeName = Annotated[
    str | None,
    typer.Option(
        "--runtime",
        help="Runtime; default: that of the imported framework.",
        rich_help_panel=_SCRIPT,
        autocompletion=runtime_names,
    ),
]
Image = Annotated[str | None, typer.Option(help="Image; default: that of the runtime.", rich_help_panel=_SCRIPT)]
Folder = Annotated[
    Path | None,
    typer.Option(
        help="Folder that travels with the script, without what .trainerignore and git ignore and what by its name "
        "holds secrets; default: the modules beside the script that it imports, and requirements.txt or "
        "pyproject.toml.",
        rich_help_panel=_SCRIPT,
    ),
]
CodeFrom = Annotated[
    str | None,
    typer.Option(
        metavar="git+https://HOST/REPOSITORY@REVISION",
        help="Repository that the nodes fetch the code from; SCRIPT is a path in it.",
        rich_help_panel=_SCRIPT,
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="Environment variable, without a value that of here; may be given several times.",
        rich_help_panel=_SCRIPT,
    ),
]
SecretVariables = Annotated[
    list[str] | None,
    typer.Option(
        "--secret-env",
        metavar="NAME=SECRET:KEY",
        help="Environment variable from a key of a Secret; may be given several times.",
        rich_help_panel=_SCRIPT,
    ),
]
Name = Annotated[
    str | None, typer.Option(help="Name of the TrainJob; default: that of the script.", rich_help_panel=_SCRIPT)
]
Queue = Annotated[str | None, typer.Option(help="Queue of Kueue that it waits in.", rich_help_panel=_SCRIPT)]
MaxRestarts = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="How often it starts again after a failure; evictions and the like do not count. Default: as the runtime.",
        rich_help_panel=_SCRIPT,
    ),
]
StallAfter = Annotated[
    str | None,
    typer.Option(
        metavar="10m",
        help="Time without progress after which it is Stalled, 0s for never; default: as the manager is configured.",
        rich_help_panel=_SCRIPT,
    ),
]
Checkpoints = Annotated[
    str | None,
    typer.Option(
        metavar="CLAIM[/PATH]",
        help="Claim that keeps its checkpoints, in TRAINER_CHECKPOINT_DIR; default: that of the runtime, if any; "
        "an empty one stands for none.",
        rich_help_panel=_SCRIPT,
        autocompletion=claim_names,
    ),
]
Suspend = Annotated[
    bool, typer.Option("--suspend", help="Create it suspended: trainer resume starts it.", rich_help_panel=_SCRIPT)
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Submit nothing; print the objects as YAML.", rich_help_panel=_SCRIPT)
]
PrintAs = Annotated[
    Literal["yaml"] | None,
    typer.Option("--output", "-o", help="Print the submitted objects; do not follow.", rich_help_panel=_SCRIPT),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOptions:
    """What `trainer run SCRIPT` and the functions of Python are given; the defaults leave it to the runtime."""

    script: str = ""
    """A file, or with `code_from` its path in the repository; of a function its name with `.py`."""
    function: FunctionCall | None = None
    """What runs in place of a script; only from Python."""
    arguments: tuple[str, ...] = ()
    folder: Path | None = None
    """What travels whole; default: the script and what it imports from beside it."""
    code_from: str | None = None
    """A repository that nodes fetch the code from: `git+https://HOST/REPOSITORY@REVISION`."""
    runtime: str | None = None
    name: str | None = None
    nodes: int | None = None
    gpus: str | None = None
    """On each node; a number, or `RESOURCE:NUMBER`."""
    processes: int | None = None
    """On each node."""
    resources: tuple[str, ...] = ()
    """On each node; each `NAME=AMOUNT`."""
    image: str | None = None
    env: tuple[str, ...] = ()
    """Each `NAME=VALUE`, or `NAME` for what it is here."""
    secret_env: tuple[str, ...] = ()
    """Each `NAME=SECRET:KEY`."""
    further_env: tuple[str, ...] = ()
    """Names of variables that are added to the TrainJob later, such as those of the parameters of a sweep."""
    labels: tuple[tuple[str, str], ...] = ()
    """Of the TrainJob; only from Python."""
    queue: str | None = None
    max_restarts: int | None = None
    """Of failures. Default: what the runtime says."""
    stall_after: str | None = None
    """A duration such as `10m`."""
    checkpoints: str | None = None
    """`CLAIM` or `CLAIM/PATH`; empty for none."""
    suspend: bool = False


def pairs(values: Mapping[str, str] | None) -> tuple[str, ...]:
    """Values of options such as `env`, from a mapping of Python."""
    return tuple(f"{name}={value}" for name, value in (values or {}).items())
