"""`trainer render`: the objects of TrainJobs, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import anyio
import typer

import trainer
from trainer.api.trainingruntime import Runtime
from trainer.api.trainjob import TrainJob
from trainer.cli.console import note, output
from trainer.cli.documents import Document, DocumentError, UnknownKindError, checked, items_in, place, repetitions
from trainer.cli.errors import BadInputError
from trainer.cli.kinds import extra_of, further_types, installed_kinds, not_installed
from trainer.cli.offline.conversion import converted
from trainer.cli.offline.origins import Origins
from trainer.cli.offline.workspace import (
    DEFAULT_NAMESPACE,
    Files,
    OfflineNamespace,
    PluginsConfig,
    Workspace,
    made_document,
)
from trainer.cli.options import WantedApiVersion
from trainer.framework.plugin_api.component import Component, is_unique_name
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.default_gang import DEFAULT_GANG
from trainer.kube.objects import Object, key_of, name_of
from trainer.kubernetes_yaml import dump, join
from trainer.v1alpha1.client import decoded
from trainer.v1alpha1.discovery import Version


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects of one TrainJob."""

    subject: str
    runtime: str
    """Its runtime, if it is one that we ship, else ""."""
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    """By what it is a gang where its runtime does not say so, and the generated objects, which are not shown."""
    components: tuple[Component, ...]
    """Ordered by kind and name."""
    origins: Origins
    """Where their fields come from."""
    train_job: Object | None = None
    """The TrainJob itself, where it is not that of a file."""

    def to_yaml(self, *, explain: bool = False) -> str:
        """The objects as YAML documents; with `explain` comments name origins of fields."""
        annotated = self.origins.annotated
        made = [] if self.train_job is None else [dump(self.train_job)]
        return join([*made, *(annotated(each) if explain else dump(each.object) for each in self.components)])


def render_documents(documents: list[Document], *, config: Path | None = None, trial: int = 1) -> list[Rendered]:
    """Build the objects of the TrainJobs among the documents, which have their namespaces, in their order.

    Args:
        documents: with runtimes, if need be.
        config: the configuration file of a manager, for its plugins. Default: all installed plugins.
        trial: number of the TrainJob that is built of each object of a further kind. Default: the first one.
    """
    return anyio.run(_all_rendered, Workspace(documents, config), trial)


async def _all_rendered(workspace: Workspace, trial: int) -> list[Rendered]:
    results = []
    for document in workspace.documents:
        if document.is_runtime:
            await _warnings(document, workspace)
    for document in workspace.documents:
        if document.is_train_job:
            results.append(await _rendered(document, workspace, await _warnings(document, workspace)))
        elif (kind := workspace.kinds.get(document.resource)) is not None:
            warnings = await _warnings(document, workspace)
            made = made_document(document, kind, trial)
            results.append(replace(await _rendered(made, workspace, warnings), train_job=made.obj))
    return results


async def _rendered(document: Document, workspace: Workspace, warnings: tuple[str, ...]) -> Rendered:
    train_job = TrainJob.from_object(decoded(document.obj))
    try:
        runtime = await workspace.of(train_job)
        components = workspace.pipeline.build(train_job, runtime)
        origins = Origins(workspace.pipeline.steps(train_job, runtime))
    except BuildError as error:
        raise DocumentError(document.place, *error.errors, subject=document.subject) from None
    return Rendered(
        document.subject,
        f"{runtime.kind} {runtime.metadata.name}" if workspace.builds_on_shipped(train_job) else "",
        warnings,
        (
            *_gang_notes(document, runtime),
            *(_note(component, train_job) for component in components if component.generated is not None),
        ),
        tuple(sorted(components, key=_order)),
        origins,
    )


def _gang_notes(document: Document, runtime: Runtime) -> Iterator[str]:
    policy = (runtime.metadata.annotations or {}).get(DEFAULT_GANG)
    if policy is not None:
        where = "gangScheduling of the configuration, in a cluster that has what it needs"
        yield f"{document.subject} has podGroupPolicy.{policy} by {where}"


def _note(component: Component, train_job: TrainJob) -> str:
    kind, name = component.resource.kind, name_of(component.object)
    rest = ", and the end of its name" if is_unique_name(name, train_job) else ""
    return f"the manager generates the content of {kind} {name} when it creates it{rest}"


async def _warnings(document: Document, workspace: Workspace) -> tuple[str, ...]:
    review = await workspace.review(document)
    if review.errors:
        raise DocumentError(document.place, *review.errors, subject=document.subject)
    return tuple(f"{document.place} ({document.subject}): {warning}" for warning in review.warnings)


def _order(component: Component) -> tuple[str, str, str]:
    key = key_of(component.object)
    return component.resource.qualified_name, key.namespace, key.name


def render(
    *,
    file: Files,
    namespace: OfflineNamespace = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the origin of each field of the pod templates as a comment.")
    ] = False,
    trial: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Trial of the OptimizationJobs in the files; a sweep without a seed has another one in each cluster.",
        ),
    ] = 1,
    api_version: WantedApiVersion = None,
    config: PluginsConfig = None,
) -> None:
    """Print the objects that the manager creates for TrainJobs, without a cluster; refuse what admission refuses.

    Of an OptimizationJob they are those of one trial, and its TrainJob: the one that comes first where nothing is known
    of others.

    They are those of a cluster that serves the version of the files; with --api-version those of the other one, for
    which the files are converted.

    Runtimes are taken from the files, else from those that come with this package.
    """
    results = render_documents(_read(file, namespace, api_version), config=config, trial=trial)
    for result in results:
        if result.runtime:
            note(f"{result.subject} builds on {result.runtime} as it comes with trainer {trainer.__version__}")
        for warning in result.warnings:
            note(warning, kind="warning")
        for text in result.notes:
            note(text)
    output().file.write(join(result.to_yaml(explain=explain) for result in results))


def _documents(file: str, version: Version | None) -> Iterator[Document | DocumentError]:
    further = further_types()
    for item in items_in(file):
        if isinstance(item, DocumentError):
            yield item
        elif version is None:
            yield checked(*item, further)
        else:
            result = converted(*item, version)
            result.report()
            yield from (checked(obj, result.place, further) for obj in result.objects)


def _read(files: list[str], namespace: str | None, version: Version | None) -> list[Document]:
    documents: list[Document] = []
    for item in (item for file in files for item in _documents(file, version)):
        if isinstance(item, UnknownKindError) and (extra := extra_of(item.subject)) is not None:
            raise not_installed(extra)
        if isinstance(item, UnknownKindError):
            note(f"{item.place}: {item.subject} is ignored: it has no effect on what is rendered", kind="warning")
        elif isinstance(item, DocumentError):
            raise item
        else:
            documents.append(item)
    further = {kind.resource for kind in installed_kinds()}
    if not any(document.is_train_job or document.resource in further for document in documents):
        raise BadInputError(f"{', '.join(files)}: there is no TrainJob in it")
    placed = place(documents, namespace=namespace, default=DEFAULT_NAMESPACE)
    for repeated in repetitions(placed):
        raise repeated
    return placed
