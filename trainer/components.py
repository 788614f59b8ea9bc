"""Components: what other distributions add to the manager, such as controllers, watches and webhooks.

A distribution registers a function in the entry-point group `trainer.components`. The manager calls it once before it
starts, with itself, its webhooks, and what else it has to share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, TypeAlias

from trainer.configuration.configuration import Configuration
from trainer.distributions import OtherReleaseError, check_entry_point
from trainer.framework.pipeline import Pipeline
from trainer.kube.errors import ConfigurationError
from trainer.kube.manager.manager import Manager
from trainer.kube.webhook.server import WebhookServer
from trainer.v1alpha1.discovery import Version

GROUP: Final = "trainer.components"
"""The entry-point group of components; a value is a `Registration`."""
_V1_JOBS: Final = "v1-jobs"
"""The one of our distribution for the jobs of the Training Operator."""


class Registrar(Protocol):
    """Has webhooks to serve."""

    def register(self, server: WebhookServer) -> None:
        """Have the server serve them."""


class Webhooks:
    """Collects what the webhook server will serve; nothing is served where the configuration disables webhooks."""

    def __init__(self) -> None:
        self._registrars: list[Registrar] = []
        self.validating: list[str] = []
        """Names of the ValidatingWebhookConfigurations that get the CA bundle of the server."""
        self.mutating: list[str] = []
        """Names of the MutatingWebhookConfigurations that get it."""

    def add(self, registrar: Registrar, *, validating: str = "", mutating: str = "") -> None:
        """Have its webhooks served, and the CA bundle written into the webhook configurations of these names."""
        self._registrars.append(registrar)
        self.validating += [validating] if validating else []
        self.mutating += [mutating] if mutating else []

    def register(self, server: WebhookServer) -> None:
        """Have the server serve all of them."""
        for registrar in self._registrars:
            registrar.register(server)


@dataclass(frozen=True, slots=True)
class ComponentContext:
    """What the manager shares with components."""

    configuration: Configuration
    """The configuration of the manager."""
    version: Version
    """The version of TrainJobs that the cluster serves."""
    pipeline: Pipeline
    """Reviews and builds TrainJobs as the manager does, with its plugins."""

    @property
    def namespace(self) -> str | None:
        """The only namespace whose objects the manager looks at; None for all."""
        return self.configuration.controller.namespace or None


Registration: TypeAlias = Callable[[Manager, Webhooks, ComponentContext], None]
"""Registers a component; a ConfigurationError that it raises keeps the manager from starting."""


def installed_components(configuration: Configuration) -> list[Registration]:
    """The components of all installed distributions, by name; imports their code.

    Raises:
        ConfigurationError: one cannot be imported, and the message names its distribution; or the configuration enables
            one that is not installed.
    """
    points = entry_points(group=GROUP)
    if configuration.controllers.v1.enabled and _V1_JOBS not in points.names:
        remedy = "pip install 'trainer-operator[v1-jobs]'"
        raise ConfigurationError(f"controllers.v1.enabled: what serves these jobs is not installed: {remedy}")
    return [_loaded(point) for point in sorted(points, key=lambda point: point.name)]


def _loaded(point: EntryPoint) -> Registration:
    try:
        check_entry_point(point)
        registration: Registration = point.load()
    except OtherReleaseError as error:
        raise ConfigurationError(f"component {point.name}: {error}") from error
    except Exception as error:
        origin = f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
        problem = f"component {point.name} ({origin}) cannot be imported: {type(error).__name__}: {error}"
        raise ConfigurationError(problem) from error
    return registration
