"""Controller machinery in asyncio: client, informer, work queue, controller, manager; knows nothing of training.

What is exported is loaded when it is used: `trainer.kube.quantity` comes without servers, clients and metrics.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.kube.cache.cache import Cache as Cache
    from trainer.kube.cache.cached_object import CachedObject as CachedObject
    from trainer.kube.cache.informer import Informer as Informer
    from trainer.kube.cache.registration import Handler as Handler
    from trainer.kube.cache.registration import Registration as Registration
    from trainer.kube.cache.store import Lister as Lister
    from trainer.kube.client import Client as Client
    from trainer.kube.client import DeleteOptions as DeleteOptions
    from trainer.kube.client import EventType as EventType
    from trainer.kube.client import ListOptions as ListOptions
    from trainer.kube.client import LogOptions as LogOptions
    from trainer.kube.client import ObjectList as ObjectList
    from trainer.kube.client import PatchType as PatchType
    from trainer.kube.client import Propagation as Propagation
    from trainer.kube.client import WatchEvent as WatchEvent
    from trainer.kube.client import WatchOptions as WatchOptions
    from trainer.kube.clock import Clock as Clock
    from trainer.kube.clock import SystemClock as SystemClock
    from trainer.kube.controller.controller import Controller as Controller
    from trainer.kube.controller.reconcile import Reconcile as Reconcile
    from trainer.kube.controller.reconcile import Result as Result
    from trainer.kube.controller.sources import Availability as Availability
    from trainer.kube.election.leader_election import LeaderElectionOptions as LeaderElectionOptions
    from trainer.kube.errors import ApiError as ApiError
    from trainer.kube.errors import CacheSyncError as CacheSyncError
    from trainer.kube.errors import ConfigurationError as ConfigurationError
    from trainer.kube.errors import KubeError as KubeError
    from trainer.kube.errors import LeadershipLostError as LeadershipLostError
    from trainer.kube.errors import TerminalError as TerminalError
    from trainer.kube.errors import TransportError as TransportError
    from trainer.kube.events.recorder import EventRecorder as EventRecorder
    from trainer.kube.logs.logs import configure_logging as configure_logging
    from trainer.kube.manager.manager import Manager as Manager
    from trainer.kube.manager.manager import ManagerOptions as ManagerOptions
    from trainer.kube.manager.metrics_server import MetricsServer as MetricsServer
    from trainer.kube.manager.metrics_server import MetricsServerOptions as MetricsServerOptions
    from trainer.kube.manager.signals import run_until_signal as run_until_signal
    from trainer.kube.manager.supervisor import Group as Group
    from trainer.kube.metrics import Metrics as Metrics
    from trainer.kube.objects import Object as Object
    from trainer.kube.objects import ObjectKey as ObjectKey
    from trainer.kube.resource import Resource as Resource
    from trainer.kube.rest.connection import ConnectionOptions as ConnectionOptions
    from trainer.kube.rest.connection import connect as connect
    from trainer.kube.rest.http import HttpClient as HttpClient
    from trainer.kube.selection import Selection as Selection
    from trainer.kube.selectors import LabelSelector as LabelSelector
    from trainer.kube.serving.certificates import FileCertificates as FileCertificates
    from trainer.kube.serving.rotation import CertificateRotator as CertificateRotator
    from trainer.kube.serving.rotation import service_names as service_names
    from trainer.kube.serving.tls import TlsOptions as TlsOptions
    from trainer.kube.webhook.admission import AdmissionHandler as AdmissionHandler
    from trainer.kube.webhook.admission import AdmissionRequest as AdmissionRequest
    from trainer.kube.webhook.admission import AdmissionResponse as AdmissionResponse
    from trainer.kube.webhook.admission import Operation as Operation
    from trainer.kube.webhook.ca_injection import CaInjector as CaInjector
    from trainer.kube.webhook.server import WebhookServer as WebhookServer
    from trainer.kube.webhook.server import WebhookServerOptions as WebhookServerOptions
else:  # type checkers would take `__getattr__` for a promise that every name exists
    _MODULES = {
        "Cache": "cache.cache",
        "CachedObject": "cache.cached_object",
        "Informer": "cache.informer",
        "Handler": "cache.registration",
        "Registration": "cache.registration",
        "Lister": "cache.store",
        "Client": "client",
        "DeleteOptions": "client",
        "EventType": "client",
        "ListOptions": "client",
        "LogOptions": "client",
        "ObjectList": "client",
        "PatchType": "client",
        "Propagation": "client",
        "WatchEvent": "client",
        "WatchOptions": "client",
        "Clock": "clock",
        "SystemClock": "clock",
        "Controller": "controller.controller",
        "Reconcile": "controller.reconcile",
        "Result": "controller.reconcile",
        "Availability": "controller.sources",
        "LeaderElectionOptions": "election.leader_election",
        "ApiError": "errors",
        "CacheSyncError": "errors",
        "ConfigurationError": "errors",
        "KubeError": "errors",
        "LeadershipLostError": "errors",
        "TerminalError": "errors",
        "TransportError": "errors",
        "EventRecorder": "events.recorder",
        "configure_logging": "logs.logs",
        "Manager": "manager.manager",
        "ManagerOptions": "manager.manager",
        "MetricsServer": "manager.metrics_server",
        "MetricsServerOptions": "manager.metrics_server",
        "run_until_signal": "manager.signals",
        "Group": "manager.supervisor",
        "Metrics": "metrics",
        "Object": "objects",
        "ObjectKey": "objects",
        "Resource": "resource",
        "ConnectionOptions": "rest.connection",
        "connect": "rest.connection",
        "HttpClient": "rest.http",
        "Selection": "selection",
        "LabelSelector": "selectors",
        "FileCertificates": "serving.certificates",
        "CertificateRotator": "serving.rotation",
        "service_names": "serving.rotation",
        "TlsOptions": "serving.tls",
        "AdmissionHandler": "webhook.admission",
        "AdmissionRequest": "webhook.admission",
        "AdmissionResponse": "webhook.admission",
        "Operation": "webhook.admission",
        "CaInjector": "webhook.ca_injection",
        "WebhookServer": "webhook.server",
        "WebhookServerOptions": "webhook.server",
    }

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

    def __dir__() -> list[str]:
        return [*globals(), *_MODULES]
