"""`trainer runtimes`: the runtimes that a TrainJob of a namespace may refer to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from trainer.api.trainingruntime import CLUSTER_TRAINING_RUNTIMES, FRAMEWORK_LABEL, SUPPORT_LABEL, TRAINING_RUNTIMES
from trainer.cli.console import Format, OutputFormat, note, printable, say, say_json
from trainer.cli.current_cluster import ConnectedCluster, Context, Kubeconfig, Namespace, current_cluster, run_on
from trainer.cli.jobs.find import not_served
from trainer.cli.jobs.table import age_of
from trainer.kube.clock import SystemClock
from trainer.kube.errors import NotFoundError
from trainer.kube.objects import labels_of, name_of
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from trainer.kube.client import Client
    from trainer.kube.objects import Object

_GAP = 2


@dataclass(frozen=True, slots=True)
class RuntimeLine:
    """One runtime in the table and the JSON."""

    name: str
    kind: str
    """ClusterTrainingRuntime, which a runtimeRef without kind means, or TrainingRuntime."""
    framework: str
    """By its label; empty if it has none."""
    nodes: int
    """The default of a TrainJob."""
    support: str
    """`deprecated`, if its label says so."""
    age: str

    @classmethod
    def of(cls, obj: Object, kind: str, now: datetime) -> RuntimeLine:
        """Read a runtime of either kind."""
        labels = labels_of(obj)
        policy = (obj.get("spec") or {}).get("mlPolicy") or {}
        elastic = (policy.get("torch") or {}).get("elasticPolicy") or {}
        nodes = policy.get("numNodes", elastic.get("minNodes"))
        return cls(
            name_of(obj),
            kind,
            printable(labels.get(FRAMEWORK_LABEL, "")),
            nodes if isinstance(nodes, int) else 1,
            printable(labels.get(SUPPORT_LABEL, "")),
            age_of(obj, now),
        )


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
        found = await list_runtimes(cluster.client, where, SystemClock().now())
        if output is OutputFormat.JSON:
            say_json([asdict(each) for each in found])
        elif not found:
            note(f"there are no runtimes for namespace {where}: trainer install-runtimes installs ours")
        else:
            for line in table(found):
                say(line)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), show, log_level="warning"))


async def list_runtimes(client: Client, namespace: str, now: datetime) -> list[RuntimeLine]:
    """Those of the cluster and then those of the namespace, each by name."""
    found: list[RuntimeLine] = []
    for resource, where in ((CLUSTER_TRAINING_RUNTIMES, None), (TRAINING_RUNTIMES, namespace)):
        try:
            objects = (await client.list(resource, Selection(where))).items
        except NotFoundError:
            raise not_served() from None
        found += [RuntimeLine.of(each, resource.kind, now) for each in sorted(objects, key=name_of)]
    return found


def table(found: Sequence[RuntimeLine]) -> Iterator[Text]:
    """One line for each runtime, the header first."""
    titles = ("NAME", "KIND", "FRAMEWORK", "NODES", "SUPPORT", "AGE")
    rows = [titles, *((r.name, r.kind, r.framework, str(r.nodes), r.support, r.age) for r in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(titles))]
    for row in rows:
        cells = (cell.ljust(width + _GAP) for cell, width in zip(row, widths, strict=True))
        yield Text("".join(cells).rstrip())
