"""`trainer runtimes`: the runtimes that a TrainJob of a namespace may refer to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import typer
from rich.text import Text

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES
from trainer.cli.columns import columns
from trainer.cli.console import Format, OutputFormat, note, printable, say, say_json, terminal_width
from trainer.cli.console import output as standard_output
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.jobs.find import list_runtimes
from trainer.cli.jobs.table import age
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.framework.building.runtime_summary import RuntimeSummary
from trainer.kube.clock import SystemClock
from trainer.kube.objects import Object, metadata_of


@dataclass(frozen=True, slots=True)
class RuntimeLine:
    """One runtime in the table and the JSON."""

    name: str
    kind: str
    """ClusterTrainingRuntime, which a runtimeRef without kind means, or TrainingRuntime."""
    framework: str
    """The framework that its label names; empty without one."""
    nodes: int
    """The default of a TrainJob."""
    support: str
    """`deprecated`, if its label says so."""
    age: str
    description: str
    """What it is for, in the words of its author."""

    @classmethod
    def of(cls, obj: Object, kind: str, now: datetime) -> RuntimeLine:
        """Read a runtime of either kind."""
        said = RuntimeSummary.of(obj, kind)
        framework, support, description = map(printable, (said.framework, said.support, said.description))
        since = age(metadata_of(obj).get("creationTimestamp"), now)
        return cls(said.name, kind, framework, said.nodes, support, since, description)


def _table(found: Sequence[RuntimeLine], width: int | None) -> Iterator[str]:
    """Lines without columns that tell nobody apart: kinds where all are of the cluster, and what is empty for all."""
    rows = [{title: str(value) for title, value in asdict(each).items()} for each in found]
    usual = {"kind": CLUSTER_TRAINING_RUNTIMES.kind, "framework": "", "support": "", "description": ""}
    titles = [title for title in rows[0] if any(row[title] != usual.get(title) for row in rows)]
    for line in columns([[title.upper() for title in titles], *([row[title] for title in titles] for row in rows)]):
        text = Text(line)
        if width is not None:
            text.truncate(width, overflow="ellipsis")
        yield text.plain


def runtimes(
    *,
    namespace: Namespace = None,
    output: Format = OutputFormat.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """List the runtimes that TrainJobs of a namespace may refer to: those of the cluster, and those of the namespace.

    `spec.runtimeRef` of a TrainJob names one; without `kind` it means a ClusterTrainingRuntime.

    Exit code: 0; 1 when the cluster has no such resources.
    """

    async def show(cluster: ConnectedCluster) -> None:
        where = namespace or cluster.namespace
        now = SystemClock().now()
        found = [RuntimeLine.of(obj, kind, now) for obj, kind in await list_runtimes(cluster.client, where)]
        if output is OutputFormat.JSON:
            say_json([asdict(each) for each in found])
        elif not found:
            note(f"there are no runtimes for namespace {where}: trainer install-runtimes installs ours")
        else:
            for line in _table(found, terminal_width(standard_output())):
                say(line)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show))
