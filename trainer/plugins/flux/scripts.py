"""The ConfigMap with the scripts that install Flux, configure its brokers and start them."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Final

from trainer.framework import Component, revise_while_suspended
from trainer.kube.resource import CONFIG_MAPS
from trainer.kube.selection import Selection

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.framework import Reader, RuntimeInfo
    from trainer.kube.objects import Object

ENTRYPOINT_LABEL = "trainer.kubeflow.org/flux-entrypoint"
"""Label of all scripts that start Flux; only ConfigMaps with it are cached."""

SCRIPTS = Selection(label_selector=ENTRYPOINT_LABEL, metadata_only=True)
"""Watch of all scripts, metadata only, since tenants can label large ConfigMaps."""

DIRECTORY: Final = "/etc/flux-config"
"""Where containers find the scripts."""

_INSTALL, _START = "init.sh", "entrypoint.sh"
INSTALL: Final = ["/bin/bash", f"{DIRECTORY}/{_INSTALL}"]
"""The command of the init container that installs Flux."""
START: Final = ["/bin/bash", f"{DIRECTORY}/{_START}"]
"""The command that starts the broker; the command of the training follows."""

_MODE = 0o755
_BODIES: Final = {name: resources.files(__package__).joinpath(name).read_text("utf-8") for name in (_INSTALL, _START)}
"""Read here, because the first user may be on an event loop, which no file may keep waiting."""

_BROKER: Final = """\
[access]
allow-guest-user = true
allow-root-owner = true

[resource]
path = "/mnt/flux/config/etc/flux/system/R"

[bootstrap]
curve_cert = "/mnt/flux/config/etc/curve/curve.cert"
default_port = 8050
default_bind = {bind}
default_connect = {connect}
hosts = [{{ host = {hosts} }}]

[archive]
dbpath = "/mnt/flux/config/var/lib/flux/job-archive.sqlite"
period = "1m"
busytimeout = "50s"

[sched-fluxion-qmanager]
queue-policy = {policy}
"""


@dataclass(frozen=True, slots=True)
class Layout:
    """What Flux has to know about the nodes."""

    processes: int
    """On every node."""
    gpus: int
    """Of every node."""
    device: str
    """Name of the network device of the pods."""
    queue_policy: str
    """In which order Flux starts what it is asked to run."""


def scripts_name(info: RuntimeInfo) -> str:
    """Name of the ConfigMap and of the volume with it."""
    return f"{info.job_name}-flux-entrypoint"


def scripts_config_map(info: RuntimeInfo, train_job: TrainJob, layout: Layout, reader: Reader) -> Component:
    """The ConfigMap `<job>-flux-entrypoint`; once the JobSet runs, it stays as it is."""
    hosts = f"{_prefix(info)}-[{_range(info.trainer.count)}]"
    config_map: Object = {
        "apiVersion": CONFIG_MAPS.api_version,
        "kind": CONFIG_MAPS.kind,
        "metadata": {
            "name": scripts_name(info),
            "namespace": train_job.metadata.namespace,
            "labels": {ENTRYPOINT_LABEL: info.job_name},
        },
        "data": {
            _START: _script(
                _START, lead=f"{_prefix(info)}-0", resources=_resources(layout), options=_options(info, layout)
            ),
            _INSTALL: _script(_INSTALL, hosts=hosts, broker_toml=_broker(info, hosts, layout)),
        },
    }
    revise = revise_while_suspended(reader, train_job, config_map)
    return Component(CONFIG_MAPS, config_map, revise=revise, metadata_only=True)


def scripts_volume(info: RuntimeInfo) -> Object:
    """The volume with the scripts."""
    name = scripts_name(info)
    return {"name": name, "configMap": {"name": name, "defaultMode": _MODE}}


def scripts_mount(info: RuntimeInfo) -> Object:
    """The mount of the volume in a container."""
    return {"name": scripts_name(info), "mountPath": DIRECTORY, "readOnly": True}


def _script(name: str, **values: str) -> str:
    """A script that begins with its values as variables."""
    return "\n".join(["#!/bin/bash", *(f"{key}={shlex.quote(value)}" for key, value in values.items()), _BODIES[name]])


def _prefix(info: RuntimeInfo) -> str:
    """What the host names of the nodes begin with; the only Job of the trainer has index 0."""
    return f"{info.endpoints_of(info.trainer).prefix}-0"


def _broker(info: RuntimeInfo, hosts: str, layout: Layout) -> str:
    domain = info.endpoints_of(info.trainer).domain
    return _BROKER.format(
        bind=_toml(f"tcp://{layout.device}:%p"),
        connect=_toml(f"tcp://%h.{domain}:%p"),
        hosts=_toml(hosts),
        policy=_toml(layout.queue_policy),
    )


def _toml(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _resources(layout: Layout) -> str:
    """What every node has, for Flux: a core for each process, and GPUs."""
    gpus = [f"--gpu={_range(layout.gpus)}"] if layout.gpus else []
    return " ".join([f"--cores={_range(layout.processes)}", *gpus])


def _options(info: RuntimeInfo, layout: Layout) -> str:
    """Options of `flux run`.

    Processes are not bound to cores: Flux counts those of the machine, and would bind all pods there to the same ones.
    """
    nodes = info.trainer.count
    gpus = ["-g", str(max(1, layout.gpus // layout.processes))] if layout.gpus else []
    return " ".join(["-N", str(nodes), "-n", str(nodes * layout.processes), *gpus, "-o", "cpu-affinity=off"])


def _range(count: int) -> str:
    return "0" if count == 1 else f"0-{count - 1}"
