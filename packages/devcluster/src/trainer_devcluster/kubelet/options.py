"""How a kubelet runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from trainer.kube.backoff import Backoff
from trainer_devcluster.kubelet.shim.spec import DEFAULT_LOG_LIMITS, LogLimits


class PodNetworkMode(StrEnum):
    """How pods get addresses and names."""

    AUTO = "auto"
    """The first of the following that works here."""
    NETNS = "netns"
    """Each pod has a network namespace of its own; all are connected by a bridge."""
    HOSTS = "hosts"
    """Pods share the machine's network under 127.x.y.z addresses; names by a private /etc/hosts."""
    PLAIN = "plain"
    """No namespaces at all: every pod is 127.0.0.1 and names in environment variables are replaced."""


DEFAULT_RESTART_BACKOFF = Backoff(initial=10.0, maximum=300.0)
DEFAULT_RETRY_BACKOFF = Backoff(initial=0.5, maximum=20.0)


@dataclass(frozen=True, slots=True)
class KubeletOptions:
    """How a kubelet runs."""

    data_dir: Path
    """Logs, volumes and scratch directories of pods; claims (`claims/<namespace>/<name>`) outlive their pods."""
    api_server: str = ""
    """URL of the API server, under which the kubelet reaches it; pods get it, too. Default: they do not."""
    node_name: str = "laptop"
    """Name of the Node object that the kubelet keeps. Default: laptop."""
    node_resources: Mapping[str, str] = field(default_factory=dict)
    """Amounts that the Node tells in place of, or besides, those of the machine. They are counted, not enforced, and
    so are GPUs that the machine does not have. Default: none, CPUs, memory, disk and GPUs are those of the machine."""
    pod_network: PodNetworkMode = PodNetworkMode.AUTO
    """Default: auto, what the probe at the start finds."""
    restart_backoff: Backoff = DEFAULT_RESTART_BACKOFF
    """Pause before a container is started again; the first restart is immediate. Default: 10 s to 5 min, as in
    Kubernetes."""
    log_limits: LogLimits = DEFAULT_LOG_LIMITS
    """How much is kept of what one run of a container prints. Default: 5 files of 10 Mi, as in Kubernetes."""
    retry_backoff: Backoff = DEFAULT_RETRY_BACKOFF
    """Pause before looking again for a missing ConfigMap, Secret or claim. Default: 0.5 s to 20 s."""


SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def inherited_environment(host: Mapping[str, str]) -> dict[str, str]:
    """What a container sees of the machine's environment: PATH, HOME and LANG, and nothing else."""
    return {
        "PATH": f"{_interpreter_directory()}:{SYSTEM_PATH}",
        "HOME": host.get("HOME", "/"),
        "LANG": host.get("LANG", "C.UTF-8"),
    }


def _interpreter_directory() -> Path:
    """The directory of the running interpreter, which comes first on the PATH of containers.

    So `python` and what is installed beside it are those of the dev cluster.
    """
    # Not resolved: in a virtual environment the interpreter is a symbolic link, and its neighbours are what matters.
    return Path(sys.executable).parent
