"""`trainer lint`: the errors and warnings of admission, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

import anyio
import typer

from trainer.api.kubeflow_v1 import SERVED_JOBS
from trainer.cli.console import Format, OutputFormat, printable, say, say_json
from trainer.cli.documents import (
    ConvertibleKindError,
    Document,
    DocumentError,
    UnknownKindError,
    checked,
    items_in,
    place,
    repetitions,
)
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.kinds import extra_of, further_types, not_installed
from trainer.cli.offline.workspace import (
    DEFAULT_NAMESPACE,
    Files,
    OfflineNamespace,
    PluginsConfig,
    Workspace,
)


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """Admission would refuse the object."""
    WARNING = "warning"
    """Admission would accept it with a warning."""
    OK = "ok"
    """Admission would accept it; not part of the JSON."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning about a document."""

    place: str
    """Where the document stands, such as `job.yaml, document 2`."""
    subject: str
    """The object, such as `TrainJob demo`; "" if unknown."""
    severity: Severity
    field: str
    """Path of the field; "" is the whole document."""
    message: str
    """Without the path."""

    def __str__(self) -> str:
        where = f"{self.place} ({self.subject})" if self.subject else self.place
        severity = "" if self.severity is Severity.ERROR else self.severity.value
        parts = [where, severity, self.field, " ".join(self.message.split())]
        return ": ".join(part for part in parts if part)


def lint_files(files: list[str], *, namespace: str | None = None, config: Path | None = None) -> list[Finding]:
    """The findings of all documents, file by file, at least one for each document; parameters as for the command."""
    items = [item for file in files for item in _items(file)]
    documents = [item for item in items if not isinstance(item, DocumentError)]
    workspace = Workspace(place(documents, namespace=namespace, default=DEFAULT_NAMESPACE), config)
    return anyio.run(_findings, items, workspace)


async def _findings(items: list[Document | DocumentError], workspace: Workspace) -> list[Finding]:
    repeated = {error.place: error for error in repetitions(workspace.documents)}
    admitted = iter(workspace.documents)
    findings: list[Finding] = []
    for item in items:
        if isinstance(item, DocumentError):
            findings += _of_error(item)
            continue
        document = next(admitted)
        found = [*(_of_error(repeated[document.place]) if document.place in repeated else ())]
        finding, review = partial(Finding, document.place, document.subject), await workspace.review(document)
        found += [finding(Severity.ERROR, error.field, error.message) for error in review.errors]
        found += [finding(Severity.WARNING, warning.field, warning.message) for warning in review.warnings]
        findings += found or [finding(Severity.OK, "", "")]
    return findings


def _items(file: str) -> list[Document | DocumentError]:
    further = {**SERVED_JOBS, **further_types()}
    items = [item if isinstance(item, DocumentError) else checked(*item, further) for item in items_in(file)]
    if not items:
        raise BadInputError(f"{file}: there is no document in it")
    return items


def _of_error(error: DocumentError) -> Iterator[Finding]:
    if isinstance(error, UnknownKindError):
        reason = "its kind is unknown to trainer"
        if isinstance(error, ConvertibleKindError):
            reason = f"{error.remedy}, which is checked"
        elif (extra := extra_of(error.subject)) is not None:
            reason = str(not_installed(extra))
        yield Finding(error.place, error.subject, Severity.WARNING, "", f"is not checked: {reason}")
        return
    for problem in error.errors:
        yield Finding(error.place, error.subject, Severity.ERROR, problem.field, problem.message)


def lint(
    *,
    file: Files,
    namespace: OfflineNamespace = None,
    config: PluginsConfig = None,
    output: Format = OutputFormat.TEXT,
) -> None:
    """Check TrainJobs and runtimes as admission does, without a cluster: one line for each error and warning, or `ok`.

    PyTorchJobs and JAXJobs of kubeflow.org/v1 are checked as by a manager that serves them, and OptimizationJobs, where
    sweeps are installed, with the TrainJobs of their trials.

    Runtimes are taken from the files, else from those that come with this package. One that is in neither may be in the
    cluster, so that is a warning; it is an error if the name looks like a typing error, or is that of a runtime of the
    other kind.

    Exit code: 0 when there are no errors, 1 when there are, 2 when a file cannot be read.
    """
    findings = lint_files(file, namespace=namespace, config=config)
    if output is OutputFormat.JSON:
        say_json([asdict(finding) for finding in findings if finding.severity is not Severity.OK])
    else:
        for finding in findings:
            say(printable(str(finding)))
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(ExitCode.FAILED)
