"""Why a TrainJob does not run, as `trainer explain` says it, on its page."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.trainjob import TRAIN_JOBS
from trainer.explain import Explanation, Snapshot, explain
from trainer.explain.reading import SnapshotReader
from trainer.explain.target import NO_OPTIONS, CommandOptions
from trainer.kube.client import Client
from trainer.kube.clock import Clock
from trainer.kube.errors import InvalidError, NotFoundError, causes_of
from trainer.kube.objects import Object, ObjectKey
from trainer_dashboard.access.parties import Party


@dataclass(frozen=True, slots=True)
class Explanations:
    """Explains TrainJobs with the rights of a user."""

    client: Client
    """Of the user; its users see TrainJobs converted to v2alpha1."""
    clock: Clock
    party: Party
    target: CommandOptions = NO_OPTIONS
    """Options of the commands in the answers. Default: none, for users with contexts of their own."""

    async def of(self, key: ObjectKey) -> Object | None:
        """The verdict, the causes with the first on top, notes, and what could not be read.

        None where there is no such TrainJob: pages ask again when one is deleted, and it may be gone before they do.

        Raises:
            KubeError: it does not fit the model, or the API server does not answer.
        """
        async with self.party.snapshot():
            try:
                job = await self.client.get(TRAIN_JOBS, key.name, key.namespace)
            except NotFoundError:
                return None
            return await self.party.compute(self._answer, await self._snapshot(job))

    def _answer(self, snapshot: Snapshot) -> Object:
        answer = self.target.with_options(_explained(snapshot))
        causes = [asdict(cause) | {"about": str(cause.about)} for cause in answer.causes]
        unread = [asdict(each) for each in answer.unread]
        return {"verdict": answer.verdict, "causes": causes, "notes": answer.notes, "unread": unread}

    async def _snapshot(self, job: Object) -> Snapshot:
        try:
            return await SnapshotReader(self.client, job, self.clock, self.party.compute).snapshot()
        except ExceptionGroup as group:  # of requests that were sent side by side
            raise causes_of(group)[0] from None


def _explained(snapshot: Snapshot) -> Explanation:
    try:
        return explain(snapshot)
    except InvalidObjectError as error:
        raise InvalidError(422, f"{snapshot.subject} does not fit its model: {error}") from None
