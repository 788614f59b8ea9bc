"""The containers that `trainer logs` reads, with clear errors where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from trainer.api.jobset_pods import Age, Place, node_name, place_of, recency_of
from trainer.cli.errors import BadInputError, CommandError
from trainer.kube.objects import Object, name_of, uid_of
from trainer.progress.containers import StartedContainer, started_containers
from trainer.progress.primary import PrimaryContainer
from trainer.workloads.containers import containers_of


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Options --node, --all and --container."""

    node: str = ""
    """A number, or a name such as `launcher-0`, that of a replicated Job, or of a pod. Default: the one that reports
    progress, which is the first one or the launcher."""
    all_nodes: bool = False
    """Whether all nodes are meant."""
    container: str = ""
    """Default: the one that trains; with `all_nodes` all of them."""

    async def pick(self, pods: Sequence[Object], primary: PrimaryContainer) -> list[StartedContainer]:
        """The chosen containers that have started, by node; a recreated pod counts like its predecessor."""
        picked: list[StartedContainer] = []
        for pod in sorted(await self._pods(pods, primary), key=_position):
            is_named = self.container or self.all_nodes
            wanted = self.container if is_named else await primary.container_of(pod)
            if wanted and wanted not in containers_of(pod):
                if self.all_nodes:
                    continue
                names = ", ".join(containers_of(pod))
                raise BadInputError(f"--container: {node_name(pod)} has no container {wanted}; there are: {names}")
            picked += [each for each in started_containers(pod) if not wanted or each.container == wanted]
        return picked

    async def _pods(self, pods: Sequence[Object], primary: PrimaryContainer) -> Iterable[Object]:
        if self.all_nodes:
            return pods
        if self.node:
            training_job = await primary.training_job(pods)
            return [pod for pod in pods if self._is_meant(pod, training_job)]
        state = await primary.find(pods)
        chosen = next((pod for pod in pods if state is not None and uid_of(pod) == state.pod_uid), None)
        return [] if chosen is None else [pod for pod in pods if node_name(pod) == node_name(chosen)]

    def _is_meant(self, pod: Object, training_job: str) -> bool:
        place = place_of(pod)
        if self.node.isdecimal():
            return place.replicated_job == training_job and str(place.completion_index) == (
                self.node.lstrip("0") or "0"
            )
        is_first_of_job = place == (self.node, 0, 0)
        return is_first_of_job or self.node in {node_name(pod), name_of(pod)}

    @property
    def is_default(self) -> bool:
        """Whether no node is named."""
        return not self.node and not self.all_nodes

    def missing(self, pods: Sequence[Object], job: str, training_job: str, *, has_ended: bool) -> CommandError:
        """The error for a choice without logs, with the nodes that have some.

        The pods of the replicated Job `training_job` are the numbered nodes.
        """
        ordered = sorted(pods, key=_position)
        names = ", ".join(dict.fromkeys(node_name(pod) for pod in ordered))
        started = ", ".join(dict.fromkeys(node_name(pod) for pod in ordered if any(started_containers(pod))))
        wanted = f"{training_job or 'node'}-{self.node}" if self.node.isdecimal() else self.node
        if self.node and not any(self._is_meant(pod, training_job) for pod in pods):
            return BadInputError(f"--node: TrainJob {job} has no {wanted}; there are: {names}")
        if not started:
            when = "has started" if has_ended else "has started yet"
            return CommandError(f"no node of TrainJob {job} {when}; there are: {names}")
        what = wanted or "the training node"
        why = f"there is no log of {what} of TrainJob {job}, which has ended: its pod is gone or has never started"
        if not has_ended:
            why = f"{what} of TrainJob {job} has not started yet"
        return CommandError(f"{why}; there are logs of: {started} (see --node)")


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The options of one `trainer logs`."""

    choice: LogChoice
    follow: bool = False
    previous: bool = False
    tail: int | None = None
    """None: all lines."""
    since: timedelta | None = None
    """None: from the beginning."""
    timestamps: bool = False
    progress: bool = False


def newest_runs(containers: Sequence[StartedContainer], pods: Sequence[Object]) -> list[StartedContainer]:
    """Of the containers of one name on one node, keep the one in the newest pod."""
    recency = {uid_of(pod): recency_of(pod) for pod in pods}
    newest: dict[str, StartedContainer] = {}
    for container in containers:
        known = newest.get(container.source)
        if known is None or recency[container.pod_uid] >= recency[known.pod_uid]:
            newest[container.source] = container
    return list(newest.values())


def _position(pod: Object) -> tuple[Place, tuple[Age, bool, str]]:
    return place_of(pod), recency_of(pod)
