"""How managers of the same cluster agree which of them works."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator

from trainer.api.model import ApiModel
from trainer.configuration.duration import Duration, PositiveDuration, format_duration, limits
from trainer.configuration.names import Namespace, ObjectName
from trainer.kube.election.leader_election import JITTER, LeaderElectionOptions
from trainer.kube.field_errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trainer.kube.field_errors import FieldError

_SECOND = timedelta(seconds=1)


def _whole_seconds(value: timedelta) -> timedelta:
    if value % _SECOND:
        raise ValueError("must be whole seconds: a Lease cannot hold fractions")
    return value


LeaseDuration = Annotated[Duration, limits(least=_SECOND, most=(2**31 - 1) * _SECOND), AfterValidator(_whole_seconds)]


class LeaderElectionConfiguration(ApiModel):
    """How managers of the same cluster agree which of them works; field names are those of Kubernetes' components.

    All of them should be told the same. The times hold for each manager by its own clock, from what it has seen.
    """

    leader_elect: bool = False
    """Whether this manager works only while it holds the lease. Defaults to false, for the only manager of a laptop;
    the manifests that install a Deployment set it to true."""
    resource_name: ObjectName = "trainer.kubeflow.org"
    """Name of the Lease. Defaults to trainer.kubeflow.org, so that two controllers of the same objects, whatever their
    Deployments are called, never both work in one namespace."""
    resource_namespace: Namespace = ""
    """Namespace of the Lease. Defaults to "": that of the service account, or of the kubeconfig's context."""
    resource_lock: Literal["leases", ""] = "leases"
    """Kind of the object that is the lock. Defaults to leases, which "" says too: there is no other."""
    lease_duration: LeaseDuration = timedelta(seconds=15)
    """How long the others wait for a manager that no longer renews the lease; whole seconds. Defaults to 15s, as in
    Kubernetes' components."""
    renew_deadline: PositiveDuration = timedelta(seconds=10)
    """A manager that could not renew the lease for this long exits; less than leaseDuration. Defaults to 10s, which
    leaves it 5s to end."""
    retry_period: PositiveDuration = timedelta(seconds=2)
    """How often the lease is renewed; less than renewDeadline divided by 1.2. Defaults to 2s, as in Kubernetes'
    components."""

    def errors(self, path: str) -> Iterator[FieldError]:
        """Times with which a leader could not renew in time."""
        if self.renew_deadline >= self.lease_duration:
            detail = f"must be less than leaseDuration ({format_duration(self.lease_duration)})"
            yield invalid(f"{path}.renewDeadline", format_duration(self.renew_deadline), detail)
        if self.retry_period * JITTER >= self.renew_deadline:
            detail = f"must be less than renewDeadline ({format_duration(self.renew_deadline)}) divided by {JITTER}"
            yield invalid(f"{path}.retryPeriod", format_duration(self.retry_period), detail)

    def options(self, namespace: str, identity: str = "") -> LeaderElectionOptions | None:
        """What `trainer.kube` needs to know; None: there is no election.

        Args:
            namespace: of the lease, if none is configured.
            identity: of this process. Default: one that no process had before.
        """
        if not self.leader_elect:
            return None
        return LeaderElectionOptions(
            name=self.resource_name,
            namespace=self.resource_namespace or namespace,
            identity=identity,
            lease_duration=self.lease_duration // _SECOND,
            renew_deadline=self.renew_deadline.total_seconds(),
            retry_period=self.retry_period.total_seconds(),
        )
