"""Pod templates of runtimes from those of roles."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from trainer.api.losses import Losses
from trainer.kube.objects import Object, mapping_at
from trainer.v1alpha1.decode import with_literal_command
from trainer_v1_jobs.conversion.old_labels import CONTAINERS, files_of, variables_of
from trainer_v1_jobs.conversion.old_names import rewrite_names
from trainer_v1_jobs.conversion.places import Place
from trainer_v1_jobs.conversion.references import References
from trainer_v1_jobs.conversion.source import Role, Source

TRAINER: Final = "trainer"
"""Name of the container that trains, where a pod has several."""
UNBUFFERED: Final[Object] = {"name": "PYTHONUNBUFFERED", "value": "1"}
"""Makes Python write what it prints at once."""

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_CHECKS: Final = ("tcpSocket", "httpGet", "grpc")
_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True, slots=True)
class Pods:
    """A pod template for a runtime."""

    template: Object
    main: Object
    """The container in it that trains."""

    @property
    def sidecars(self) -> Iterator[Object]:
        """The other containers in it."""
        return (container for container in self.template["spec"]["containers"] if container is not self.main)


def pods_of(
    source: Source,
    role: Role,
    losses: Losses,
    reserved: AbstractSet[str] = frozenset(),
    *,
    places: Mapping[str, Place],
    reserved_beside: AbstractSet[str] = frozenset(),
    meets_at: int | None = None,
) -> Pods:
    """The template of a role, without what JobSet or a plugin sets.

    Args:
        source: the job.
        role: of the job.
        losses: what is lost is added to it.
        reserved: variables of the container that trains whose values count for nothing, since they are set by others.
        places: where the pods of all roles are, by role.
        reserved_beside: likewise, of the other containers.
        meets_at: port at which the plugin of the framework has pods meet. Default: none, they meet where the job says.
    """
    template, path = copy.deepcopy(role.template), f"{role.path}.template"
    if "metadata" in template:
        template["metadata"] = losses.metadata(template["metadata"], f"{path}.metadata")
        if not template["metadata"]:
            del template["metadata"]
    spec = template["spec"]
    for kind in CONTAINERS:
        if kind in spec:
            spec[kind] = [with_literal_command(container) for container in spec[kind]]
    _drop_pod_fields(spec, role, losses)
    main = main_container(source, spec["containers"])
    if meets_at is not None:
        _drop_port(main, source, role, meets_at, losses)
    for container in spec["containers"]:
        _drop_variables(container, reserved if container is main else reserved_beside, role, losses)
    References(source, role, places, losses).rewrite(template)
    rewrite_names(spec, role, source, places, losses)
    _rename(template, main, role, losses)
    return Pods(template, main)


def main_container(source: Source, containers: list[Object]) -> Object:
    """The container that trains: by its name, else the first."""
    wanted = source.kind.container or getattr(source.job.spec, "main_container", None)
    found = (container for container in containers if container["name"] == wanted)
    return next(found, None) or containers[0]


def declared_port(source: Source, role: Role) -> int:
    """The port at which the operator had pods meet: that of its name in the container that trains, else the default."""
    return stated_port(source, role) or source.kind.port


def stated_port(source: Source, role: Role) -> int | None:
    """The port of the operator's name in the container that trains; None if it has none."""
    main = main_container(source, role.template["spec"]["containers"])
    ports = (port["containerPort"] for port in main.get("ports") or [] if port.get("name") == source.kind.port_name)
    return next(ports, None)


def set_env(container: Object, variables: Iterable[Object]) -> None:
    """Add variables to those of a container, in whose place they come where it has them, as the last one counts."""
    additions = list(variables)
    names = {variable["name"] for variable in additions}
    kept = [variable for variable in container.get("env") or [] if variable["name"] not in names]
    if kept or additions:
        container["env"] = [*kept, *additions]


def _drop_pod_fields(spec: Object, role: Role, losses: Losses) -> None:
    path = f"{role.path}.template.spec"
    policy = spec.pop("restartPolicy", None)
    if policy is not None and policy != role.restart_policy:
        losses.add(f"{path}.restartPolicy", f"had no effect: that of the replicas, {role.restart_policy}, counts")
    for name in ("hostname", "subdomain"):
        if spec.pop(name, None) is not None:
            losses.add(f"{path}.{name}", "is set by JobSet: read TRAINJOB_NAME and the pod's index instead")


def _drop_port(main: Object, source: Source, role: Role, meets_at: int, losses: Losses) -> None:
    """Leave out the port of the operator's name; the plugin of the framework declares its own."""
    kind = source.kind
    kept = []
    for index, port in enumerate(main.get("ports") or []):
        if not kind.port_name or port.get("name") != kind.port_name:
            kept.append(port)
        elif port["containerPort"] != meets_at:
            rule = (
                f"is left out: pods meet at {meets_at}; read it from the variables, and open it where a NetworkPolicy "
                f"names {port['containerPort']}"
            )
            losses.add(f"{role.containers_path}[{main['name']}].ports[{index}]", rule)
        if port not in kept:
            _probe_at(main, {kind.port_name, port["containerPort"]}, meets_at)
    if kept:
        main["ports"] = kept
    else:
        main.pop("ports", None)


def _probe_at(main: Object, former: set[str | int], port: int) -> None:
    """Have probes of the port that is left out, by its name or number, ask the one at which pods meet."""
    for probe, check in itertools.product(_PROBES, _CHECKS):
        if (asked := mapping_at(main, probe, check)).get("port") in former:
            asked["port"] = port


def _drop_variables(container: Object, reserved: AbstractSet[str], role: Role, losses: Losses) -> None:
    kept = []
    for index, variable in enumerate(container.get("env") or []):
        if variable["name"] not in reserved:
            kept.append(variable)
            continue
        if variable == UNBUFFERED:
            continue
        rule = f"is left out: every pod gets its own {variable['name']}; remove it"
        losses.add(f"{role.containers_path}[{container['name']}].env[{index}]", rule)
    if kept:
        container["env"] = kept
    else:
        container.pop("env", None)


def _rename(template: Object, main: Object, role: Role, losses: Losses) -> None:
    """Call the container that trains so that it is found among others; what refers to it by its name follows."""
    containers = template["spec"]["containers"]
    if len(containers) == 1:
        return
    old = main["name"]
    for container in containers:
        if container is not main and container["name"] == TRAINER:
            container["name"] = f"{TRAINER}-sidecar"
            rule = f"becomes {TRAINER}-sidecar: the container that trains is called {TRAINER} beside others"
            losses.add(f"{role.containers_path}[{TRAINER}].name", rule)
    main["name"] = TRAINER
    annotations = mapping_at(template, "metadata", "annotations")
    if annotations.get(_DEFAULT_CONTAINER) == old:
        annotations[_DEFAULT_CONTAINER] = TRAINER
    for reference in _resource_references(template["spec"]):
        if reference.get("containerName") == old:
            reference["containerName"] = TRAINER


def _resource_references(spec: Object) -> Iterator[Object]:
    """What names a container in variables and in volumes of the downward API."""
    for _, variable in variables_of(spec):
        yield mapping_at(variable, "valueFrom", "resourceFieldRef")
    for _, item in files_of(spec):
        yield mapping_at(item, "resourceFieldRef")
