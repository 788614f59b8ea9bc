"""The container of a TrainJob that a command is meant for, with clear errors where none runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.state import JobState
from trainer.cli.logs.choice import LogChoice, newest_runs
from trainer.cli.logs.follower import pods_of
from trainer.kube.client import Client
from trainer.kube.errors import ForbiddenError, InternalError, NotFoundError
from trainer.kube.objects import Object, name_of, uid_of
from trainer.kube.resource import PODS
from trainer.progress.containers import StartedContainer
from trainer.progress.primary import PrimaryContainer
from trainer.workloads.containers import container_status

Node = Annotated[
    str, typer.Option(metavar="K", help="Number of a training node, or a name such as launcher-0. Default: node 0.")
]
Container = Annotated[
    str, typer.Option("--container", "-c", help="Container of the node. Default: the one that trains.")
]


async def running_container(client: Client, job: Object, choice: LogChoice) -> StartedContainer:
    """The container of a TrainJob that the options name, which runs.

    Raises:
        CommandError: it does not run, or there is none; says why, and what shows more.
    """
    name, state = name_of(job), JobState.of(job)
    if state.is_terminal:
        raise CommandError(
            f"TrainJob {name} has ended, and is {state.word}: nothing of it runs any more; what it has printed: "
            f"trainer logs {name}"
        )
    pods = (await client.list(PODS, pods_of(job))).items
    if not pods:
        why = f" ({state.explanation})" if state.explanation else ""
        raise CommandError(f"TrainJob {name} has no pods: it is {state.word}{why}; see: trainer explain {name}")
    primary = PrimaryContainer(client, job)
    found = newest_runs(await choice.pick(pods, primary), pods)
    if not found:
        error = choice.missing(pods, name, await primary.training_job(pods), has_ended=False)
        if isinstance(error, BadInputError):
            raise error
        wanted = f"node {choice.node}" if choice.node else "the training node"
        raise CommandError(f"{wanted} of TrainJob {name} has not started yet; see: trainer explain {name}")
    container = found[0]
    pod = next(pod for pod in pods if uid_of(pod) == container.pod_uid)
    if problem := _problem(container_status(pod, container.container)):
        shown = f"trainer logs {name}{f' --node {choice.node}' if choice.node else ''}"
        raise CommandError(f"{container.source} of TrainJob {name} does not run now: it {problem}; see: {shown}")
    return container


def _problem(status: Object) -> str:
    """Why a container that has been started does not run; "" if it does."""
    state = status.get("state") or {}
    if ended := state.get("terminated"):
        return f"has ended with exit code {ended.get('exitCode')}"
    if "running" not in state:
        reason = (state.get("waiting") or {}).get("reason")
        return f"waits to be started again{f' ({reason})' if reason else ''}"
    return ""


@contextmanager
def refusals_explained(container: StartedContainer) -> Iterator[None]:
    """Say in plain words why the API server starts no command in a container."""
    try:
        yield
    except ForbiddenError as error:
        raise CommandError(
            f"you may not run commands in pods of namespace {container.namespace}: ask for a role with the verbs get "
            f"and create on pods/exec ({error})"
        ) from None
    except NotFoundError:
        raise CommandError(f"pod {container.pod} is gone: it has been deleted or replaced meanwhile") from None
    except InternalError as error:
        if "container not found" not in error.message:
            raise
        raise CommandError(f"{container.source} does not run any more: its container has just ended") from None
