"""Backend: what all request handlers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trainer.kube.clock import Clock, timestamp
from trainer_devcluster.apiserver.container_logs import LogGrowth
from trainer_devcluster.apiserver.definitions.resource_definition import ResourceRegistry
from trainer_devcluster.apiserver.storage.storage import Storage
from trainer_devcluster.apiserver.wire.event_lines import MediaTypes
from trainer_devcluster.container_commands import CommandRunner
from trainer_devcluster.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates


@dataclass(frozen=True, slots=True)
class Backend:
    """The state of the server behind its HTTP face."""

    storage: Storage
    registry: ResourceRegistry
    clock: Clock
    data_dir: Path
    """Where the kubelet keeps container logs."""
    ca_pem: str
    """The authority that clients have to trust; published in every namespace."""
    feature_gates: FeatureGates = DEFAULT_FEATURE_GATES
    """The feature gates of the server."""
    log_growth: LogGrowth = field(default_factory=LogGrowth)
    """Waits for those who follow logs; the server runs it."""
    commands: CommandRunner = field(default_factory=CommandRunner)
    """Runs commands in containers."""
    media_types: MediaTypes = field(default_factory=MediaTypes)
    """The encoded lines that watchers share."""

    def now(self) -> str:
        """The time as objects carry it."""
        return timestamp(self.clock.now())
