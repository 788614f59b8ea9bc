"""`trainer runtimes`: the runtimes that a TrainJob of a namespace may refer to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

import typer

from trainer.cli.columns import columns
from trainer.cli.console import Format, OutputFormat, note, printable, say, say_json
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

    @classmethod
    def of(cls, obj: Object, kind: str, now: datetime) -> RuntimeLine:
        """Read a runtime of either kind."""
        said = RuntimeSummary.of(obj, kind)
        framework, support = printable(said.framework), printable(said.support)
        return cls(said.name, kind, framework, said.nodes, support, age(metadata_of(obj).get("creationTimestamp"), now))


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
            titles = ("NAME", "KIND", "FRAMEWORK", "NODES", "SUPPORT", "AGE")
            for line in columns([titles, *(tuple(map(str, asdict(each).values())) for each in found)]):
                say(line)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show))
