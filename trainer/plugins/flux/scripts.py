"""The ConfigMap with the scripts that install Flux, configure its brokers and start them."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from typing import Final

from trainer.api.trainjob import TrainJob
from trainer.framework import Component, PodConfigMap, Reader, RuntimeInfo
from trainer.kube.objects import Object

ENTRYPOINT_LABEL = "trainer.kubeflow.org/flux-entrypoint"
"""Label of all scripts that start Flux; only ConfigMaps with it are cached."""

SCRIPTS = PodConfigMap("flux-entrypoint", ENTRYPOINT_LABEL)
"""The ConfigMaps with the scripts; the volumes with them have the same names."""

DIRECTORY: Final = "/etc/flux-config"
"""Where containers find the scripts."""

_INSTALL, _START = "init.sh", "entrypoint.sh"
INSTALL: Final = ["/bin/bash", f"{DIRECTORY}/{_INSTALL}"]
"""The command of the init container that installs Flux."""
START: Final = ["/bin/bash", f"{DIRECTORY}/{_START}"]
"""The command that starts the broker; the command of the training follows."""

_MODE = 0o755
_BODIES: Final = {name: resources.files(__package__).joinpath(name).read_text("utf-8") for name in (_INSTALL, _START)}
"""Read at import, because the first caller may run on an event loop, which must not block on a file."""

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


def scripts_config_map(
    info: RuntimeInfo,
    train_job: TrainJob,
    reader: Reader,
    *,
    processes: int,
    gpus: int,
    device: str,
    queue_policy: str,
) -> Component:
    """The ConfigMap `<job>-flux-entrypoint`; once the JobSet runs, it stays as it is.

    Every node has these processes and GPUs; `device` is the network device of the pods.
    """
    hosts = f"{_prefix(info)}-[{_range(info.trainer.count)}]"
    broker = _BROKER.format(
        bind=_toml(f"tcp://{device}:%p"),
        connect=_toml(f"tcp://%h.{info.endpoints_of(info.trainer).domain}:%p"),
        hosts=_toml(hosts),
        policy=_toml(queue_policy),
    )
    # A core for each process, and GPUs.
    resources = f"--cores={_range(processes)}" + (f" --gpu={_range(gpus)}" if gpus else "")
    options = _options(info.trainer.count, processes, gpus)
    scripts = {
        _START: _script(_START, lead=f"{_prefix(info)}-0", resources=resources, options=options),
        _INSTALL: _script(_INSTALL, hosts=hosts, broker_toml=broker),
    }
    return SCRIPTS.component(train_job, scripts, reader)


def scripts_volume(info: RuntimeInfo) -> Object:
    """The volume with the scripts."""
    name = SCRIPTS.name(info.job_name)
    return {"name": name, "configMap": {"name": name, "defaultMode": _MODE}}


def scripts_mount(info: RuntimeInfo) -> Object:
    """The mount of the volume in a container."""
    return {"name": SCRIPTS.name(info.job_name), "mountPath": DIRECTORY, "readOnly": True}


def _script(name: str, **values: str) -> str:
    """A script that begins with its values as variables."""
    return "\n".join(["#!/bin/bash", *(f"{key}={shlex.quote(value)}" for key, value in values.items()), _BODIES[name]])


def _prefix(info: RuntimeInfo) -> str:
    """The common prefix of the host names of the nodes; the only Job of the trainer has index 0."""
    return f"{info.endpoints_of(info.trainer).prefix}-0"


def _toml(text: str) -> str:
    """A basic string of TOML, which escapes as JSON does, but for one character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _options(nodes: int, processes: int, gpus: int) -> str:
    """Options of `flux run`.

    Processes are not bound to cores: Flux counts those of the machine, and would bind all pods there to the same ones.
    """
    share = ["-g", str(max(1, gpus // processes))] if gpus else []
    return " ".join(["-N", str(nodes), "-n", str(nodes * processes), *share, "-o", "cpu-affinity=off"])


def _range(count: int) -> str:
    return "0" if count == 1 else f"0-{count - 1}"
