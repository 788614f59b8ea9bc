"""The table of subcommands: the help lists them, and errors suggest them, without loading their modules."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Panel(StrEnum):
    """Groups of subcommands in the help."""

    TRY = "Run TrainJobs"
    LOOK = "See how TrainJobs are doing"
    CHANGE = "Change TrainJobs"
    LAPTOP = "A cluster on this machine"
    SERVERS = "Processes and manifests"
    OTHER = "Of other distributions"


class Listed(NamedTuple):
    """A subcommand as the help lists it."""

    panel: Panel
    source: str
    """The module that has the function of the same name; for commands of our other distributions, the extra."""
    summary: str
    """The first paragraph of the docstring; a test compares them."""


COMMANDS = {
    "demo": Listed(Panel.TRY, "trainer.cli.local.demo",
        "Start a dev cluster and a controller manager, run a TrainJob on them, show how it ends, and clean up."),
    "run": Listed(Panel.TRY, "trainer.cli.run.run",
        "Submit a script, or the TrainJobs of a file, and follow them: logs, state, warnings, and how they end."),
    "lint": Listed(Panel.TRY, "trainer.cli.offline.lint",
        "Check TrainJobs and runtimes as admission does, without a cluster: one line for each error and warning, "
        "or `ok`."),
    "render": Listed(Panel.TRY, "trainer.cli.offline.render",
        "Print the objects that the manager creates for TrainJobs, without a cluster; refuse what admission refuses."),
    "get": Listed(Panel.LOOK, "trainer.cli.jobs.get",
        "Show TrainJobs: state, progress, remaining time, metrics; with a NAME also conditions and why it waits "
        "or failed."),
    "top": Listed(Panel.LOOK, "trainer.cli.jobs.top",
        "Show the TrainJobs of all namespaces, or of one, on the whole screen until interrupted: those that train "
        "first."),
    "attach": Listed(Panel.LOOK, "trainer.cli.run.attach",
        "Follow a TrainJob that exists, as `trainer run` does: logs, state, warnings, and how it ends."),
    "explain": Listed(Panel.LOOK, "trainer.cli.explain.explain",
        "Say why a TrainJob does not run: the first cause on top, with the remedy and the command that shows more."),
    "logs": Listed(Panel.LOOK, "trainer.cli.logs.logs",
        "Print the log of a TrainJob's first node, of the launcher of an MPI training, or of other nodes."),
    "exec": Listed(Panel.LOOK, "trainer.cli.containers.exec",
        "Run a command in a container of a TrainJob that runs: on its first node, or on another one."),
    "cp": Listed(Panel.LOOK, "trainer.cli.containers.cp",
        "Copy a file or folder out of a container of a TrainJob that runs, or into it."),
    "metrics": Listed(Panel.LOOK, "trainer.cli.metrics.metrics",
        "Draw the metrics that a TrainJob has reported since its start: least, greatest and last value over the "
        "steps."),
    "runtimes": Listed(Panel.LOOK, "trainer.cli.jobs.runtimes",
        "List the runtimes that TrainJobs of a namespace may refer to: those of the cluster, and those of the "
        "namespace."),
    "suspend": Listed(Panel.CHANGE, "trainer.cli.jobs.changes",
        "Suspend TrainJobs: their pods are deleted, and start from the beginning when they are resumed."),
    "resume": Listed(Panel.CHANGE, "trainer.cli.jobs.changes",
        "Resume TrainJobs that are suspended; those of a queue of Kueue wait in it until they are admitted."),
    "scale": Listed(Panel.CHANGE, "trainer.cli.jobs.scale",
        "Change the number of nodes of an elastic TrainJob while it runs, or of any other while it is suspended."),
    "delete": Listed(Panel.CHANGE, "trainer.cli.jobs.changes",
        "Delete TrainJobs with their pods and everything else that was created for them."),
    "up": Listed(Panel.LAPTOP, "trainer.cli.local.up",
        "Start a dev cluster and a controller manager in the background, with CRDs and runtimes applied."),
    "down": Listed(Panel.LAPTOP, "trainer.cli.local.down",
        "Stop the cluster and the manager of `trainer up`."),
    "status": Listed(Panel.LAPTOP, "trainer.cli.local.status",
        "Show what runs in the background and what is on the cluster; exit code 0 when cluster and manager run, "
        "else 1."),
    "cluster": Listed(Panel.SERVERS, "trainer.cli.local.cluster",
        "Run the dev cluster in the foreground; SIGTERM or Ctrl-C stops it and every pod it runs."),
    "manager": Listed(Panel.SERVERS, "trainer.cli.operate.manager",
        "Run the controller manager in the foreground; SIGTERM or Ctrl-C stops it gracefully, a second one at once."),
    "plugins": Listed(Panel.SERVERS, "trainer.cli.operate.plugins",
        "List the plugins of the manager: name, origin, extension points, and whether they are enabled."),
    "crds": Listed(Panel.SERVERS, "trainer.cli.operate.install",
        "Print the CustomResourceDefinitions, for `kubectl apply --server-side -f -`."),
    "install-runtimes": Listed(Panel.SERVERS, "trainer.cli.operate.install",
        "Apply the runtimes we ship, or others, to the current cluster, once it is ready for them."),
}  # fmt: skip
"""Subcommands of this distribution, in the order of the help."""

OF_EXTRAS = {
    "compare": Listed(Panel.LOOK, "dashboard",
        "Show what differed between two trainings of the history: result, metrics, parameters, spec and runtime."),
    "dashboard": Listed(Panel.LOOK, "dashboard",
        "Show TrainJobs on a web page, with the rights of the kubeconfig, until interrupted."),
    "dashboard-server": Listed(Panel.SERVERS, "dashboard",
        "Serve the dashboard for all users of a cluster, who see what they themselves may see."),
    "history": Listed(Panel.LOOK, "dashboard",
        "List what was trained, also what the cluster has forgotten and `trainer history record` has seen."),
    "sweep": Listed(Panel.TRY, "sweeps",
        "Search the parameters with which a script ends best: trials, each a TrainJob, followed to the best one."),
    "sweeps": Listed(Panel.LOOK, "sweeps",
        "List sweeps: state, progress, the best value so far, and trials by state."),
    "convert": Listed(Panel.TRY, "v1-jobs",
        "Print objects of the other version of the API, jobs of the Training Operator, and Experiments of Katib."),
}  # fmt: skip
"""Subcommands of our other distributions, which join by entry points."""
