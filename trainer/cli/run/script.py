"""`trainer run SCRIPT`: from a script to the objects that train it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path, PurePosixPath

from anyio.to_thread import run_sync

from trainer.cli.console import note, printable
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.documents import Document, checked
from trainer.cli.errors import BadInputError
from trainer.cli.run.code_source import git_code
from trainer.cli.run.folder import PackedFile, files_of_folder, files_of_modules, files_of_script
from trainer.cli.run.frameworks import PLAIN, ChosenRuntime, choose_runtime, framework_of, runtimes_of_cluster
from trainer.cli.run.function import FunctionCall
from trainer.cli.run.ignores import IGNORE_FILE
from trainer.cli.run.imports import Imports, imports_in, imports_of
from trainer.cli.run.node_resources import amounts_per_node, devices_per_node, resources_per_node
from trainer.cli.run.options import ScriptOptions
from trainer.cli.run.package import START, CodePackage, pack, start_program
from trainer.cli.run.requirements import (
    PROJECT,
    REQUIREMENTS,
    Requirements,
    check_packages,
    unread_requirements,
)
from trainer.cli.run.revision import revision_of
from trainer.cli.run.script_job import Code, as_served, job_name, train_job
from trainer.cli.run.unreachable_packages import warn_of_packages
from trainer.cli.run.variables import check_text, environment
from trainer.cli.similar import did_you_mean_file
from trainer.kube.resource import CONFIG_MAPS

_REPORT = "report.py"
"""What scripts report their progress with; it travels with those that import it and have none beside them."""
_MOST_NAMED = 50
"""Files with secrets that are named."""


@dataclass(frozen=True, slots=True)
class ScriptJob:
    """A TrainJob and its code, ready to be submitted."""

    train_job: Document
    """In the version that the cluster serves."""
    config_map: Document
    packed: str
    """What is packed and how much."""
    runtime: str
    """Its name."""

    @property
    def description(self) -> str:
        """What is packed, for which TrainJob, and the runtime."""
        return f"{self.packed} for {self.train_job.subject} with runtime {self.runtime}"


async def prepare_script(cluster: ConnectedCluster, options: ScriptOptions, namespace: str) -> ScriptJob:
    """Pack the code, choose the runtime, and make the objects; nothing is sent.

    Raises:
        BadInputError: the options, the code or the cluster leave no TrainJob to make; says why and what to do.
    """
    for word in (options.script, *options.arguments):
        check_text("SCRIPT [-- ARGS]", word, shown=printable(word))
    if options.suspend and options.queue is not None:
        raise BadInputError(
            "--suspend: must not be given together with --queue, because Kueue resumes what it admits: leave one of "
            "them out, or suspend it afterwards (trainer suspend NAME)"
        )
    variables = environment(options.env, options.secret_env, os.environ)
    name = job_name(options.name, options.script)
    gpus, amounts = devices_per_node(options.gpus), amounts_per_node(options.resources)
    code = await run_sync(_code, options)
    runtime = await _runtime(cluster, options, code, namespace)
    await warn_of_packages(cluster, code.requirements, (each["name"] for each in variables))
    resources = resources_per_node(gpus, amounts, runtime)
    job = train_job(options, code, runtime, name, namespace, resources=resources, environment=variables)
    document = checked(as_served(job, cluster.served.version), options.script)
    if not isinstance(document, Document):
        raise document
    return ScriptJob(
        document,
        Document(CONFIG_MAPS, code.package.config_map(name, namespace)),
        code.package.description,
        runtime.name,
    )


async def _runtime(cluster: ConnectedCluster, options: ScriptOptions, code: Code, namespace: str) -> ChosenRuntime:
    framework = PLAIN
    if options.runtime is None:
        if code.imports is None:
            raise BadInputError("--runtime: must be given, because the script is not here to be read")
        framework = framework_of(code.imports.modules, options.script, code.requirements.names)
    known = await runtimes_of_cluster(cluster.client, namespace)
    return choose_runtime(known, namespace, name=options.runtime, framework=framework, script=options.script)


def _code(options: ScriptOptions) -> Code:
    if options.function is not None:
        return _code_of_function(options.function)
    if options.code_from is not None:
        return _code_of_git(options, options.code_from)
    script = Path(options.script)
    _check_script(script)
    imports = _imports(script)
    if imports.is_binary:
        raise BadInputError(f"{script} is no Python script: it has zero bytes, so that it is no text")
    if imports.syntax_error:
        note(f"{script} cannot be parsed here ({printable(imports.syntax_error)}): it may fail", kind="warning")
    folder = script.parent.resolve() if options.folder is None else options.folder.resolve()
    secrets: list[str] = []
    if options.folder is None:
        files = files_of_script(script, imports.beside, left_out=secrets.append)
    elif not folder.is_dir():
        raise BadInputError(f"--folder: there is no folder {options.folder}")
    else:
        files = files_of_folder(folder, left_out=secrets.append)
    if secrets:
        note(_left_out(secrets), kind="warning")
    relative = _relative(script, folder)
    if relative not in {file.name for file in files}:
        raise BadInputError(f"{script} is ignored in {folder} (.trainerignore, .gitignore): the script must travel")
    _warn_of_unread(files, folder)
    additions = _reporter(imports, PurePosixPath(relative).parent, files)
    revision = revision_of(folder, [file.name for file in files])
    return Code(pack(files, folder, additions), relative, imports, Requirements.of_folder(folder), revision=revision)


def _code_of_function(call: FunctionCall) -> Code:
    """The script that calls a function, the modules beside it that it imports, and its packages."""
    check_packages(call.packages)
    source = call.source.encode()
    try:
        imports = imports_in(source, call.directory)
    except OSError as error:
        raise BadInputError(f"{printable(str(error.filename))} cannot be read: {error.strerror}") from None
    secrets: list[str] = []
    files = files_of_modules(call.directory, imports.beside, left_out=secrets.append)
    if secrets:
        note(_left_out(secrets), kind="warning")
    additions = {call.script: source, **_reporter(imports, PurePosixPath(), files)}
    if call.packages:
        additions[REQUIREMENTS] = "".join(f"{each}\n" for each in call.packages).encode()
    package = pack(files, call.directory, additions, reads_project=False)
    return Code(package, call.script, imports, Requirements(call.packages))


def _reporter(imports: Imports, folder: PurePosixPath, files: Sequence[PackedFile]) -> dict[str, bytes]:
    """The module that reports progress, if it is imported and not among the files."""
    report = (folder / _REPORT).as_posix()
    if _REPORT.removesuffix(".py") not in imports.modules or report in {file.name for file in files}:
        return {}
    return {report: package_files("trainer.progress").joinpath(_REPORT).read_bytes()}


def _left_out(secrets: Sequence[str]) -> str:
    named = ", ".join(printable(name) for name in secrets[:_MOST_NAMED])
    rest = f" and {len(secrets) - _MOST_NAMED} more" if len(secrets) > _MOST_NAMED else ""
    return (
        f"not packed, because by their names they hold secrets: {named}{rest}; give passwords by --secret-env; a line "
        f"!{printable(secrets[0])} in {IGNORE_FILE} packs {printable(secrets[0])} all the same, for everybody who may "
        "read the code"
    )


def _warn_of_unread(files: Sequence[PackedFile], folder: Path) -> None:
    table = "" if REQUIREMENTS in {file.name for file in files} else unread_requirements(folder)
    if table:
        note(
            f"{PROJECT} has its dependencies in {table}, so that none of them is installed: list them in "
            f"{REQUIREMENTS} or in project.dependencies",
            kind="warning",
        )


def _imports(script: Path) -> Imports:
    try:
        return imports_of(script)
    except OSError as error:
        raise BadInputError(f"{printable(str(error.filename or script))} cannot be read: {error.strerror}") from None


def _code_of_git(options: ScriptOptions, reference: str) -> Code:
    if options.folder is not None:
        raise BadInputError("--folder: must not be given together with --code-from, which brings the whole repository")
    path = PurePosixPath(options.script)
    if path.is_absolute() or ".." in path.parts:
        raise BadInputError(f"{path}: must be a path in the repository of --code-from, such as src/train.py")
    git = git_code(reference)
    package = CodePackage({START: start_program()}, {}, f"{git.url} at {git.commit[:12]}")
    here = Path(options.script)
    return Code(package, path.as_posix(), _imports(here) if here.is_file() else None, git=git, revision=git.commit)


def _check_script(script: Path) -> None:
    if script.is_dir():
        raise BadInputError(f"{script} is a folder: name the script in it, such as trainer run {script}/train.py")
    if script.suffix in {".yaml", ".yml", ".json"}:
        raise BadInputError(f"{script} is no Python script: trainer run -f {script} submits the TrainJobs in it")
    if not script.is_file():
        raise BadInputError(f"there is no script {script}{did_you_mean_file(script)}")
    if script.suffix != ".py":
        raise BadInputError(f"{script} is no Python script: its name must end in .py")


def _relative(script: Path, folder: Path) -> str:
    # The folder is resolved; the script may be a link in it.
    place = script.parent.resolve() / script.name
    if not place.is_relative_to(folder):
        raise BadInputError(f"{script} is not in the folder {folder}: name a folder above it with --folder")
    return place.relative_to(folder).as_posix()
