"""`trainer cp`: files and folders out of a container of a TrainJob, and into it, by the tar of its image."""

from __future__ import annotations

import os
import posixpath
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import anyio
import typer
from anyio import from_thread, to_thread

from trainer.cli.console import note, printable, say
from trainer.cli.containers.archive import Copied, EndOfArchiveError, pack, unpack
from trainer.cli.containers.place import Container, Node, refusals_explained, running_container
from trainer.cli.containers.streams import reason_of
from trainer.cli.current_cluster import ConnectedCluster, current_cluster, run_on
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.find import find_train_job
from trainer.cli.logs.choice import LogChoice
from trainer.cli.options import Context, Kubeconfig, Namespace
from trainer.cli.similar import did_you_mean_file
from trainer.kube.errors import ApiError, TransportError
from trainer.kube.remote_command import CommandClient, CommandOptions, OutputStream, RemoteCommand
from trainer.progress.containers import StartedContainer

_KEPT = 4096
"""Bytes of what tar says."""
_FILES_CHANGED = 1
"""Exit code of tar when a file has changed while it was read."""
_SHOWN = 5
"""Files that were left out, by name."""
_MISSING = ("executable file not found", "no such file or directory")
"""Words of container runtimes for a program that an image does not have."""
_BELOW = "; the path is below the working directory of the image, and trainer run works in /mnt/trainer/work/code"


class RemotePath(NamedTuple):
    """A path in a container of a TrainJob."""

    job: str
    path: str

    @classmethod
    def parse(cls, text: str) -> RemotePath | None:
        """`NAME:PATH`; None for a path on this machine. Without a PATH it is the working directory."""
        name, colon, path = text.partition(":")
        if not colon or not name or "/" in name or name == ".":
            return None
        return cls(name, path or ".")


def cp(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="NAME:PATH, or a path here.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A path here, or NAME:PATH.", show_default=False)],
    *,
    node: Node = "",
    container: Container = "",
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Copy a file or folder out of a container of a TrainJob that runs, or into it.

    One of the two is NAME:PATH, in the TrainJob NAME; a PATH that does not begin with / is below the working directory
    of the container. A folder is copied with all that is in it; what goes to a folder that exists keeps its name there.
    The image of the container needs tar. A local file with a colon in its name is written as ./a:b.

    Exit code: 0; 1 when it cannot be copied, 2 for wrong paths or options.
    """
    there, to_there = RemotePath.parse(source), RemotePath.parse(target)
    remote = there or to_there
    if remote is None or (there is not None and to_there is not None):
        raise BadInputError(
            "one of SOURCE and TARGET must be NAME:PATH, a path in the TrainJob NAME, and the other one a path here"
        )
    local = Path(target if there is not None else source)
    if to_there is not None and not os.path.lexists(local):
        raise BadInputError(f"there is no {local} to copy{did_you_mean_file(local)}")
    if there is not None and not local.parent.is_dir():
        raise BadInputError(f"there is no folder {local.parent} to copy to")

    async def run(cluster: ConnectedCluster) -> None:
        job = await find_train_job(cluster.client, remote.job, namespace or cluster.namespace)
        place = await running_container(cluster.client, job, LogChoice(node, container=container))
        copy = _Copy(cluster.commands, place)
        with refusals_explained(place):
            if there is not None:
                await copy.out(remote.path, local, is_folder=target.endswith("/"))
            else:
                await copy.into(local, remote.path)

    raise typer.Exit(run_on(current_cluster(kubeconfig, context), run))


@dataclass(frozen=True, slots=True)
class _Copy:
    """Copies files of one container."""

    commands: CommandClient
    container: StartedContainer

    async def out(self, path: str, target: Path, *, is_folder: bool) -> None:
        """Copy out of the container, to a folder that is made if `is_folder` says so."""
        folder, base = _split(path)
        if is_folder:
            await anyio.Path(target).mkdir(exist_ok=True)
        if base and await anyio.Path(target).is_dir():
            target /= base
        # With the dot in front a name is no option of tar.
        async with self._tar("-cf", "-", "-C", folder, f"./{base}") as tar:
            copied = await tar.receive(base, Path(await anyio.Path(target).absolute()))
            if tar.exit_code == _FILES_CHANGED and copied.files:
                note(f"files changed while they were read: {tar.said}", kind="warning")
            else:
                tar.check(self._shown(path), "" if path.startswith("/") else _BELOW)
        _tell(copied, self._shown(path), str(target))

    async def into(self, source: Path, path: str) -> None:
        """Copy into the container."""
        source_itself = Path(await anyio.Path(source).resolve())
        folder, name = _split(path)
        if not name or path.endswith("/") or await self._is_folder(path):
            own_name = source.name not in {"", ".."}
            folder, name = path, source.name if own_name else source_itself.name
        async with self._tar("-xf", "-", "-C", folder, stdin=True) as tar:
            copied = await tar.send(source_itself, name)
            tar.check(self._shown(path))
        _tell(copied, str(source), self._shown(posixpath.join(folder, name)))

    async def _is_folder(self, path: str) -> bool:
        async with self._execute("test", "-d", path) as command:
            try:
                async with aclosing(command.output()) as output:
                    async for _ in output:
                        pass
            except ApiError:  # without `test` there is mostly no tar either, which is said next
                return False
            return command.exit_code == 0

    @asynccontextmanager
    async def _tar(self, *arguments: str, stdin: bool = False) -> AsyncIterator[_Tar]:
        async with self._execute("tar", *arguments, stdin=stdin) as command:
            yield _Tar(command, self.container)

    def _execute(self, *words: str, stdin: bool = False) -> AbstractAsyncContextManager[RemoteCommand]:
        options = CommandOptions(words, self.container.container, stdin=stdin)
        return self.commands.execute(self.container.pod, self.container.namespace, options)

    def _shown(self, path: str) -> str:
        return f"{self.container.source}:{posixpath.normpath(path)}"


def _split(path: str) -> tuple[str, str]:
    """The folder of a path, and the name in it; "" for the content of the folder."""
    normal = posixpath.normpath(path)
    folder, name = posixpath.split(normal)
    return (normal, "") if name in {"", ".", ".."} else (folder or ".", name)


def _tell(copied: Copied, source: str, target: str) -> None:
    for each in copied.left_out[:_SHOWN]:
        note(f"left out {each}", kind="warning")
    if (more := len(copied.left_out) - _SHOWN) > 0:
        note(f"left out {more} more", kind="warning")
    if copied.left_out and not copied.files:
        raise CommandError(f"nothing of {printable(source)} was copied")
    say(f"copied {printable(source)} to {printable(target)} ({copied})")


class _Tar:
    """A tar that runs in a container."""

    def __init__(self, command: RemoteCommand, container: StartedContainer) -> None:
        self._command = command
        self._container = container
        self._errors = bytearray()
        self._took_all = True

    @property
    def exit_code(self) -> int:
        """How it has ended."""
        return self._command.exit_code

    @property
    def said(self) -> str:
        """The first line of its errors."""
        lines = self._errors.decode(errors="replace").splitlines()
        return printable(lines[0].removeprefix("tar: ")) if lines else f"tar ended with exit code {self.exit_code}"

    def check(self, what: str, hint: str = "") -> None:
        """Raise an error about `what` unless all has gone well, perhaps with a hint."""
        if self.exit_code or not self._took_all:
            raise CommandError(f"{what}: {self.said}{hint}")

    async def receive(self, base: str, target: Path) -> Copied:
        """Unpack what it writes, see `unpack`."""
        async with anyio.create_task_group() as tasks, aclosing(self._output()) as output:

            def read() -> bytes:
                from_thread.check_cancelled()  # nothing else does while there is always more to read
                return from_thread.run(anext, output, b"")

            tasks.start_soon(self._command.keep_alive)
            copied = await to_thread.run_sync(unpack, read, base, target)
            async for _ in output:  # it pads its archive
                pass
            tasks.cancel_scope.cancel()
        return copied

    async def send(self, source: Path, name: str) -> Copied:
        """Give it what it reads, see `pack`."""
        ended, copied = anyio.Event(), Copied()

        def write(data: bytes) -> None:
            if ended.is_set():
                raise EndOfArchiveError
            from_thread.check_cancelled()
            from_thread.run(self._command.write, data)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._command.keep_alive)
            tasks.start_soon(self._wait, ended)
            try:
                copied = await to_thread.run_sync(pack, source, name, write)
                await self._command.end_input()
            except EndOfArchiveError:
                self._took_all = False
            await ended.wait()
            tasks.cancel_scope.cancel()
        return copied

    async def _wait(self, ended: anyio.Event) -> None:
        async with aclosing(self._output()) as output:
            async for _ in output:
                pass
        ended.set()

    async def _output(self) -> AsyncGenerator[bytes, None]:
        try:
            async for stream, data in self._command.output():
                if stream is OutputStream.OUTPUT:
                    yield data
                else:
                    self._errors += data[: _KEPT - len(self._errors)]
        except ApiError as error:
            raise self._refusal(error) from None
        except TransportError as error:
            raise CommandError(str(error)) from None

    def _refusal(self, error: ApiError) -> CommandError:
        reason, place = reason_of(error), f"container {self._container.container} of pod {self._container.pod}"
        if "tar" in reason and any(text in reason for text in _MISSING):
            return CommandError(f"the image of {place} has no tar, which trainer cp needs: use an image that has it")
        return CommandError(f"tar cannot run in {place}: {reason}")
