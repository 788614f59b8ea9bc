"""`trainer convert`: objects of the other version of the API, of operators and of Katib as those of this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import anyio
import typer

from trainer.api.kubeflow_v1 import becomes
from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.completion import namespace_names
from trainer.cli.console import complain, output
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.documents import DocumentError, UnknownKindError, checked, items_in, place, valid
from trainer.cli.errors import BadInputError, ExitCode
from trainer.cli.offline.conversion import converted
from trainer.cli.offline.converted import Converted
from trainer.cli.offline.workspace import DEFAULT_NAMESPACE, Workspace
from trainer.cli.options import Context, Kubeconfig
from trainer.kube.objects import Object
from trainer.kubernetes_yaml import join
from trainer.v1alpha1.discovery import Version
from trainer_v1_jobs.commands.job_references import JobReference, job_references
from trainer_v1_jobs.katib import first_trial

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
"""Files of a directory that are read."""

References = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[KIND/NAME]...",
        help="Jobs and Experiments in the cluster, such as pytorchjob/demo.",
        show_default=False,
        autocompletion=job_references,
    ),
]
FilesAndDirectories = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        help="YAML file, or directory with such files; - is standard input. May be given several times.",
        show_default=False,
    ),
]
PrintedVersion = Annotated[
    Literal["v1alpha1", "v2alpha1"],
    typer.Option(
        "--api-version",
        help="Version of what is printed; v1alpha1 is that of Kubeflow Trainer (Go).",
    ),
]
OutputPath = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File for the result; a directory gets a file for each that is read."),
]
JobNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        help="Namespace of jobs in the cluster; default: that of the context.",
        autocompletion=namespace_names,
    ),
]


@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """What becomes one file of the output."""

    name: Path
    """Path of that file below the output directory."""
    source: str
    """The file that is read; - is standard input, "" the cluster."""
    items: Iterable[tuple[Object, str] | DocumentError]
    """The objects, each with its place."""


def convert(
    references: References = None,
    *,
    file: FilesAndDirectories = None,
    api_version: PrintedVersion = "v2alpha1",
    output_path: OutputPath = None,
    check: Annotated[
        bool, typer.Option("--check", help="Print no objects; the exit code is 0 if nothing is lost, else 1, or 2.")
    ] = False,
    namespace: JobNamespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print objects of the other version of the API, jobs of the Training Operator, and Experiments of Katib.

    A PyTorchJob, TFJob, MPIJob, XGBoostJob, JAXJob or PaddleJob becomes a TrainJob, an Experiment an OptimizationJob.
    A runtime is written for it unless one that comes with this package says the same. Other objects are printed as they
    are.

    Each member that is lost is a comment in the result and a line on standard error, and so is each mistake in the
    result, there only.

    Exit code: 0 when all objects are valid, 1 when one is not, 2 when a file or job cannot be read. With --check: 0
    when nothing is lost, 1 when something is, 2 when a file or job cannot be read or the result is not valid.
    """
    if not file and not references:
        raise BadInputError("name files with --file, or jobs in the cluster, such as pytorchjob/demo")
    inputs = [*_files(file or [])]
    if references:
        inputs += _jobs(references, namespace, kubeconfig, context)
    outcome = _Outcome()
    texts = {each: outcome.text_of(each, api_version) for each in inputs}
    if not check:
        _write(texts, output_path)
    for error in outcome.errors:
        complain(str(error))
    if code := outcome.exit_code(is_check=check):
        raise typer.Exit(code)


class _Outcome:
    """What has come of the inputs so far."""

    def __init__(self) -> None:
        self.errors: list[DocumentError] = []
        self._is_lossy = False
        self._is_refused = False

    def text_of(self, source: Input, version: Version) -> str:
        """The result as YAML; losses are reported at once, mistakes are kept."""
        texts: list[str] = []
        for content, where in valid(source.items):
            try:
                result = converted(content, where, version)
            except DocumentError as error:
                self.errors.append(error)
                self._is_refused = True
                continue
            result.report()
            self._is_lossy |= bool(result.losses)
            self.errors += [*_mistakes(result)] or (_refusals(content, where) if becomes(content) else ())
            texts.append(result.to_yaml())
        return join(texts)

    def exit_code(self, *, is_check: bool) -> ExitCode:
        """See `convert`."""
        if self._is_refused or (is_check and self.errors):
            return ExitCode.BAD_INPUT
        if self.errors or (is_check and self._is_lossy):
            return ExitCode.FAILED
        return ExitCode.OK


def _mistakes(result: Converted) -> Iterator[DocumentError]:
    for obj in result.objects:
        found = checked(obj, result.place)
        if isinstance(found, DocumentError) and not isinstance(found, UnknownKindError):
            yield found


def _refusals(content: Object, where: str) -> Iterator[DocumentError]:
    """What admission would refuse of a TrainJob, or of the first trial, with the runtime that was written for it.

    Of both versions the pods are the same; that of v1alpha1 only warns of what cannot have any, as Kubeflow Trainer
    (Go) takes it.
    """
    result = converted(content, where, "v2alpha1")
    objects = [first_trial(each) if each["kind"] == OPTIMIZATION_JOBS.kind else each for each in result.objects]
    found = [checked(each, result.place) for each in objects]
    yield from (each for each in found if isinstance(each, DocumentError))
    documents = [each for each in found if not isinstance(each, DocumentError)]
    workspace = Workspace(place(documents, namespace=None, default=DEFAULT_NAMESPACE))

    async def review() -> list[DocumentError]:
        reviews = [(each, await workspace.review(each)) for each in workspace.documents]
        return [
            DocumentError(each.place, *review.errors, subject=each.subject) for each, review in reviews if review.errors
        ]

    yield from anyio.run(review)


def _files(names: list[str]) -> Iterator[Input]:
    """The files, and those of directories in the order of their paths."""
    for name in names:
        path = Path(name)
        if name != "-" and path.is_dir():
            found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
            if not found:
                raise BadInputError(f"{name}: there is no YAML file in it")
            yield from (Input(each.relative_to(path), str(each), items_in(str(each))) for each in found)
        else:
            yield Input(Path("standard-input.yaml") if name == "-" else Path(path.name), name, items_in(name))


def _jobs(
    references: list[str], namespace: str | None, kubeconfig: Path | None, context: str | None
) -> Iterator[Input]:
    """The jobs of a cluster, all of them read before the first is converted."""
    wanted = [JobReference.parse(reference) for reference in references]
    found: list[Object] = []

    async def read(cluster: ConnectedCluster) -> None:
        found.extend([await each.read(cluster.client, namespace or cluster.namespace) for each in wanted])

    if code := run_on(current_cluster(kubeconfig, context), read):
        raise typer.Exit(code)
    for reference, job in zip(references, found, strict=True):
        name = reference.replace("/", "-").lower()
        yield Input(Path(f"{name}.yaml"), "", [(job, reference)])


def _write(texts: dict[Input, str], path: Path | None) -> None:
    if path is None:
        output().file.write(join(text for text in texts.values() if text))
        return
    is_directory = path.is_dir() or len(texts) > 1 or not path.suffix
    targets = {source: path / source.name if is_directory else path for source in texts}
    taken: dict[Path, Input] = {}
    for source, target in targets.items():
        if source.source not in {"", "-"} and target.resolve() == Path(source.source).resolve():
            raise BadInputError(f"--output: {target} is what is read; name another file or directory")
        if target in taken:
            raise BadInputError(f"--output: {target} would be the result of {source.source} and {taken[target].source}")
        taken[target] = source
    for source, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(texts[source], encoding="utf-8")


app = typer.Typer(add_completion=False)
app.command("convert")(convert)
