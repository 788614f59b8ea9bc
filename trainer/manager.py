"""The composition root of the controller manager: reads the configuration, wires everything, runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import yaml
from pydantic import AfterValidator, Field

from trainer.api.field_error import InvalidObjectError
from trainer.api.model import ApiModel
from trainer.controllers.trainjob import TrainJobController
from trainer.framework.pipeline import Pipeline
from trainer.framework.reader import CacheReader
from trainer.framework.registry import Registry
from trainer.kube.errors import ConfigurationError
from trainer.kube.manager import Manager, ManagerOptions
from trainer.plugins.jax import Jax
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.plainml import PlainML
from trainer.plugins.torch import Torch

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.framework.reader import Reader
    from trainer.kube.client import Client
    from trainer.kube.clock import Clock


def _check_address(value: str) -> str:
    _, separator, port = value.rpartition(":")
    if not separator or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"must be host:port, got {value!r}")
    return value


class ManagerConfiguration(ApiModel):
    """What the controller manager can be told; everything has a default."""

    namespace: Annotated[str, Field(min_length=1)] | None = None
    """The only namespace whose TrainJobs are looked after. Defaults to all namespaces."""
    max_concurrent_reconciles: Annotated[int, Field(ge=1)] = 5
    """How many TrainJobs are worked on at the same time. Defaults to 5."""
    http_bind_address: Annotated[str, AfterValidator(_check_address)] | None = None
    """`host:port` for /healthz, /readyz and /metrics; all addresses when the host is empty. Defaults to no server."""
    cache_sync_timeout_seconds: Annotated[float, Field(gt=0)] = 120.0
    """How long the first lists of all watched resources may take before the manager gives up. Defaults to 120."""

    @classmethod
    def load(cls, path: Path) -> ManagerConfiguration:
        """Read a YAML file.

        Raises:
            ConfigurationError: the file cannot be read, or has unknown or wrong fields; one line names them.
        """
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ConfigurationError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        if document is not None and not isinstance(document, dict):
            raise ConfigurationError(f"{path}: must be a mapping of settings, not {type(document).__name__}")
        try:
            return cls.from_object(document or {}, strict=True)
        except InvalidObjectError as error:
            raise ConfigurationError(f"{path}: {'; '.join(map(str, error.errors))}") from error

    @property
    def options(self) -> ManagerOptions:
        """The part that is for `trainer.kube`."""
        bind = None
        if self.http_bind_address is not None:
            host, _, port = self.http_bind_address.rpartition(":")
            bind = (host or "0.0.0.0", int(port))  # noqa: S104 probes and Prometheus come from outside of the pod
        return ManagerOptions(cache_sync_timeout=self.cache_sync_timeout_seconds, http_bind=bind)


def built_in_plugins(reader: Reader) -> Registry:
    """The plugins that come with this package."""
    return Registry([PlainML(), Torch(), Jax(), JobSetPlugin(reader)])


def build_manager(client: Client, configuration: ManagerConfiguration, *, clock: Clock | None = None) -> Manager:
    """A manager with all controllers registered, ready to run."""
    manager = Manager(client, clock=clock, options=configuration.options)
    reader = CacheReader()
    TrainJobController(
        manager,
        Pipeline(built_in_plugins(reader)),
        reader,
        namespace=configuration.namespace,
        max_concurrent_reconciles=configuration.max_concurrent_reconciles,
    )
    return manager


async def run_manager(client: Client, configuration: ManagerConfiguration) -> None:
    """Run the controller manager until cancelled.

    Raises:
        CacheSyncError: the API server does not serve our kinds or JobSets in time; the message names the remedy.
        OSError: the health endpoint's address is in use.
    """
    await build_manager(client, configuration).run()
