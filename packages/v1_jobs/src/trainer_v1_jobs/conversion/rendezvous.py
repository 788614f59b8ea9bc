"""Where the agents of an elastic PyTorchJob meet: `--rdzv-*` options of torchrun, as variables.

A host that is a pod of the job, by the name that the operator gave it, becomes the first node. Any other host, such as
an etcd server, stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object
from trainer_v1_jobs.api.kinds import ElasticPolicy
from trainer_v1_jobs.conversion.draft import Nodes, PerRoleJobs
from trainer_v1_jobs.conversion.places import name_variable
from trainer_v1_jobs.conversion.pods import stated_port
from trainer_v1_jobs.conversion.source import Source

_ELASTIC: Final = "spec.elasticPolicy"
_C10D: Final = "c10d"
_IS_HOST: Final[dict[str, str]] = {"is_host": "true"}
"""Else no node hosts the store where DNS is late (pytorch/pytorch#73380), which the plugin avoids likewise."""


def node_variables(source: Source, policy: ElasticPolicy, port: int) -> Iterator[Object]:
    """What the plugin does not do by itself; that of v2alpha1 has the agents meet at the first node, in c10d's store.

    Args:
        source: the job.
        policy: its elastic policy.
        port: where nodes meet unless the job says otherwise.
    """
    is_all = source.version == "v1alpha1"  # whose plugin knows no rendezvous
    if is_all or policy.rdzv_backend not in {None, _C10D}:
        yield {"name": "PET_RDZV_BACKEND", "value": policy.rdzv_backend or _C10D}
    if is_all or not meets_inside(source, policy) or _stated_port(source, policy) not in {None, port}:
        if meets_inside(source, policy):
            yield name_variable()
        yield {"name": "PET_RDZV_ENDPOINT", "value": endpoint(source, policy, Nodes().host(0), port)}
    if policy.rdzv_id is not None:
        yield {"name": "PET_RDZV_ID", "value": policy.rdzv_id}
    if is_all:
        yield {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"}  # see the plugin


def configuration(source: Source, policy: ElasticPolicy, losses: Losses, *, is_alone: bool = False) -> str:
    """The value of `PET_RDZV_CONF`; "" for that of the plugin, or of torchrun for a node that `is_alone`."""
    for index, setting in enumerate(policy.rdzv_conf or []):
        if not setting.key:
            losses.add(f"{_ELASTIC}.rdzvConf[{index}]", "is left out: it has no key")
    settings = {setting.key: setting.value or "" for setting in policy.rdzv_conf or [] if setting.key}
    is_needed = bool(settings) or (source.version == "v1alpha1" and not is_alone)
    if is_needed and meets_inside(source, policy):
        settings = _IS_HOST | settings
    return ",".join(f"{name}={value}" for name, value in settings.items())


def operator_variables(
    source: Source, policy: ElasticPolicy, pods: Nodes | PerRoleJobs, port: int | None
) -> Iterator[Object]:
    """What the operator gives a container, whatever the plugin does; see `node_variables` for `port`."""
    first = source.pods - (source.role("Worker") or source.roles[0]).replicas
    yield {"name": "PET_RDZV_ENDPOINT", "value": endpoint(source, policy, pods.host(first), port)}
    yield {"name": "PET_RDZV_BACKEND", "value": policy.rdzv_backend or _C10D}
    if policy.rdzv_id is not None:
        yield {"name": "PET_RDZV_ID", "value": policy.rdzv_id}
    if policy.rdzv_conf:
        conf = ",".join(f"{setting.key or ''}={setting.value or ''}" for setting in policy.rdzv_conf)
        yield {"name": "PET_RDZV_CONF", "value": conf}


def endpoint(source: Source, policy: ElasticPolicy, first: str, port: int | None) -> str:
    """Host and port; `first` is the host that takes the place of a pod of the job."""
    is_inside = meets_inside(source, policy)
    number = _stated_port(source, policy) or (port if is_inside else None) or source.kind.port
    return f"{first if is_inside else policy.rdzv_host}:{number}"


def _stated_port(source: Source, policy: ElasticPolicy) -> int | None:
    """The port of the rendezvous that the job states, in its policy or as that of its workers."""
    return policy.rdzv_port or stated_port(source, source.role("Worker") or source.roles[0])


def meets_inside(source: Source, policy: ElasticPolicy) -> bool:
    """Whether agents meet at a pod of the job."""
    name, namespace = source.metadata.get("name"), source.metadata.get("namespace")
    if policy.rdzv_host is None:
        return True
    if not name:
        return False
    own = re.escape(namespace) if namespace else "[a-z0-9-]+"
    pod = rf"{re.escape(name)}-(master|worker)-[0-9]+(\.{own}(\.svc(\..+)?)?)?"
    return re.fullmatch(pod, policy.rdzv_host) is not None


def check_backend(source: Source, policy: ElasticPolicy, losses: Losses) -> None:
    """Name a backend for which there is no server."""
    if policy.rdzv_backend not in {None, _C10D} and meets_inside(source, policy):
        rule = f"finds no server, since no pod of the job is one of etcd: set rdzvHost, or rdzvBackend to {_C10D}"
        losses.add(f"{_ELASTIC}.rdzvBackend", rule)
