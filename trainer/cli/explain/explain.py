"""`trainer explain NAME`: the cause, its remedy, and the command that shows more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from trainer.api.trainjob import TRAIN_JOBS
from trainer.cli.completion import object_names
from trainer.cli.console import Format, OutputFormat, output, say_json
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.documents import Document, check_version, place, read_documents
from trainer.cli.errors import BadInputError, GoneError
from trainer.cli.explain.prospect import Prospect
from trainer.cli.explain.report import EXIT_CODES, as_json, lines
from trainer.cli.jobs.find import find_train_job
from trainer.cli.kinds import Named, kind_with, named
from trainer.cli.options import Context, Kubeconfig, Namespace, cluster_options
from trainer.explain import Explanation, Subject
from trainer.explain import explain as explanation_of
from trainer.explain.reading import SnapshotReader
from trainer.explain.target import CommandOptions
from trainer.kube.clock import SystemClock

OptionalNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND] NAME",
        help="Name of the TrainJob; or a kind such as sweep, and the name of one.",
        show_default=False,
        autocompletion=object_names,
    ),
]
SubmittedFile = Annotated[
    str | None,
    typer.Option("--file", "-f", help="YAML file with a TrainJob that is not submitted yet; - is standard input."),
]


def explain(
    names: OptionalNames = None,
    *,
    file: SubmittedFile = None,
    namespace: Namespace = None,
    form: Format = OutputFormat.TEXT,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Say why a TrainJob does not run: the first cause on top, with the remedy and the command that shows more.

    It follows the TrainJob to its runtime, its queue, its JobSet, Jobs, pods, containers and gang, and to its progress.
    What the user may not read, such as nodes, is named, and the answer is made of the rest.

    With --file it says what would hold the TrainJob of a file on this cluster: by dry run, and by the objects that its
    pods name. Nothing is stored.

    `trainer explain sweep NAME`, or sweep/NAME, or its NAME alone where no TrainJob has it, is about a sweep.

    Exit code: 0 when it runs or is Complete, or when nothing would hold it; 3 when something holds it, or would (also
    when it makes no progress); 4 when it Failed, or would be refused; 1 when there is no answer, 2 for bad input.
    """
    objects = named(names or ())
    if (len(objects) != 1) if file is None else bool(names):
        raise BadInputError("name a TrainJob (trainer explain NAME), or a file with one (trainer explain -f FILE)")
    documents = read_documents(file) if file is not None else []
    options = current_cluster(kubeconfig, context)
    target = CommandOptions(cluster_options(options.kubeconfig, context), cluster_options(kubeconfig, context))

    async def answer(cluster: ConnectedCluster) -> int:
        if file is not None:
            prospect = _prospect(cluster, documents, namespace)
            subject, found = prospect.subject, await prospect.explanation()
        else:
            subject, found = await _present(cluster, objects[0], namespace or cluster.namespace)
        found = target.with_options(found)
        if form is OutputFormat.JSON:
            say_json(as_json(subject, found))
        else:
            console = output()
            for line in lines(subject, found, is_plan=file is not None):
                console.print(line)
        return EXIT_CODES[found.verdict]

    raise typer.Exit(run_on(options, answer))


async def _present(cluster: ConnectedCluster, wanted: Named, namespace: str) -> tuple[Subject, Explanation]:
    """An object of the cluster; of another kind also where it is named as a TrainJob, and none has the name."""
    name, kind = wanted.name, wanted.kind
    if kind is None:
        try:
            job = await find_train_job(cluster.client, name, namespace)
        except GoneError:
            kind = await kind_with(cluster, name, namespace)
            if kind is None:
                raise
        else:
            snapshot = await SnapshotReader(cluster.client, job, SystemClock()).snapshot()
            return Subject(TRAIN_JOBS.kind, name, namespace), explanation_of(snapshot)
    return Subject(kind.resource.kind, name, namespace), await kind.explanation(cluster, name, namespace)


def _prospect(cluster: ConnectedCluster, documents: Sequence[Document], namespace: str | None) -> Prospect:
    """The one TrainJob of a file, on this cluster."""
    check_version(documents, cluster.served.version)
    placed = place(list(documents), namespace=namespace, default=cluster.namespace)
    job, *further = [each for each in placed if each.is_train_job]
    if further:
        raise BadInputError(f"--file: has {1 + len(further)} TrainJobs; explain one at a time")
    return Prospect(cluster, job, [each for each in placed if not each.is_train_job])
