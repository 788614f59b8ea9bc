"""OptimizationJobs, as commands of trainer-operator ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from trainer.api.optimization import OPTIMIZATION_JOBS
from trainer.cli.console import output
from trainer.cli.current_cluster import ConnectedCluster
from trainer.cli.errors import BadInputError, CommandError
from trainer.cli.jobs.find import find_object, reference
from trainer.cli.kinds import Asked
from trainer.cli.run.sweep_api import Values
from trainer.explain import Explanation
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.errors import Review
from trainer.framework.runtimes.runtimes import RuntimeSource
from trainer.kube.clock import SystemClock
from trainer.kube.objects import Object, uid_of
from trainer.kube.resource import Resource
from trainer.v1alpha1.discovery import Version
from trainer_sweeps.admission import review_sweep
from trainer_sweeps.api.definitions import definition
from trainer_sweeps.api.optimizationjob import OptimizationJob
from trainer_sweeps.commands.changes import delete_sweep, set_suspend
from trainer_sweeps.commands.explanation import SweepExplainer
from trainer_sweeps.commands.parameters import parse_space
from trainer_sweeps.commands.show import SEE, Show
from trainer_sweeps.commands.submission import submit_from_python
from trainer_sweeps.search.suggestion import AlgorithmUnavailableError, number_of_trials, seed_of, suggestion
from trainer_sweeps.trials.train_job import train_job_of

_VERSIONS: Final[Mapping[str, Version]] = {
    f"{OPTIMIZATION_JOBS.group}/{each}": each for each in ("v1alpha1", "v2alpha1")
}


class OptimizationJobKind:
    """Sweeps; see `trainer.cli.kinds.Kind` and `trainer.cli.run.sweep_api.Sweeps`."""

    @property
    def resource(self) -> Resource:
        """See `Kind`."""
        return OPTIMIZATION_JOBS

    @property
    def words(self) -> tuple[str, ...]:
        """See `Kind`."""
        return ("sweep", "sweeps", "optimizationjob", "optimizationjobs", "optjob")

    def definitions(self, version: Version) -> list[Object]:
        """See `Kind`."""
        return [definition(version)]

    async def review(self, obj: Object, pipeline: Pipeline, runtimes: RuntimeSource, version: Version) -> Review:
        """See `Kind`."""
        return await review_sweep(obj, pipeline, runtimes, version, must_exist=False)

    def train_job(self, obj: Object, number: int) -> Object:
        """See `Kind`."""
        spec = OptimizationJob.from_object(obj).spec
        try:
            count = number_of_trials(spec)
            if number > count:
                raise BadInputError(f"--trial: the sweep has {count} trials: name one from 1 to {count}")
            assignment = suggestion(spec, seed_of(spec, uid_of(obj)), (), number)
        except AlgorithmUnavailableError as error:
            raise CommandError(f"no trial can be chosen here: {error}") from None
        version = _VERSIONS[obj["apiVersion"]]
        made = train_job_of(obj, spec, number, assignment, version)
        del made["metadata"]["ownerReferences"]  # it has no uid yet
        return made

    async def show(self, cluster: ConnectedCluster, asked: Asked) -> int:
        """See `Kind`."""
        return await Show(cluster, self._served(cluster), asked, output(), SystemClock()).run()

    async def explanation(self, cluster: ConnectedCluster, name: str, namespace: str) -> Explanation:
        """See `Kind`."""
        return await SweepExplainer(cluster, self._served(cluster), SystemClock()).answer(name, namespace)

    async def delete(self, cluster: ConnectedCluster, name: str, namespace: str) -> str:
        """See `Kind`."""
        resource = self._served(cluster)
        sweep = await find_object(cluster.client, name, namespace, resource, see=SEE)
        await delete_sweep(cluster, sweep)
        return f"{reference(sweep, resource)} deleted"

    async def set_suspend(self, cluster: ConnectedCluster, name: str, namespace: str, *, suspend: bool) -> str:
        """See `Kind`."""
        resource = self._served(cluster)
        sweep = await find_object(cluster.client, name, namespace, resource, see=SEE)
        if not await set_suspend(cluster, sweep, suspend=suspend):
            return f"{reference(sweep, resource)} is {'suspended already' if suspend else 'not suspended'}"
        return f"{reference(sweep, resource)} {'suspended' if suspend else 'resumed'}"

    def expressions(self, space: Mapping[str, Values]) -> Mapping[str, str]:
        """See `Sweeps`."""
        return {each.name: each.expression for each in parse_space(space)}

    submit = staticmethod(submit_from_python)
    """See `Sweeps`."""

    def _served(self, cluster: ConnectedCluster) -> Resource:
        return cluster.served.resource(OPTIMIZATION_JOBS)
