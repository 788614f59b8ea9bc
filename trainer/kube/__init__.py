"""Controller machinery in asyncio: client, informer, work queue, controller, manager; knows nothing of training."""

from __future__ import annotations

from trainer.kube.cache.cache import Cache
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.cache.registration import Handler, Registration
from trainer.kube.cache.store import Lister
from trainer.kube.client import (
    Client,
    DeleteOptions,
    EventType,
    ListOptions,
    LogOptions,
    ObjectList,
    PatchType,
    Propagation,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.controller.controller import Controller
from trainer.kube.controller.reconcile import Reconcile, Result
from trainer.kube.controller.sources import Availability
from trainer.kube.election.leader_election import LeaderElectionOptions
from trainer.kube.errors import (
    ApiError,
    CacheSyncError,
    ConfigurationError,
    KubeError,
    LeadershipLostError,
    TerminalError,
    TransportError,
)
from trainer.kube.events.recorder import EventRecorder
from trainer.kube.logs.logs import configure_logging
from trainer.kube.manager.manager import Manager, ManagerOptions
from trainer.kube.manager.metrics_server import MetricsServer, MetricsServerOptions
from trainer.kube.manager.signals import run_until_signal
from trainer.kube.manager.supervisor import Group
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.kube.rest.connection import ConnectionOptions, connect
from trainer.kube.rest.http import HttpClient
from trainer.kube.selection import Selection
from trainer.kube.selectors import LabelSelector
from trainer.kube.serving.certificates import FileCertificates
from trainer.kube.serving.rotation import CertificateRotator, service_names
from trainer.kube.serving.tls import TlsOptions
from trainer.kube.webhook.admission import AdmissionHandler, AdmissionRequest, AdmissionResponse, Operation
from trainer.kube.webhook.ca_injection import CaInjector
from trainer.kube.webhook.server import WebhookServer, WebhookServerOptions

__all__ = [
    "AdmissionHandler",
    "AdmissionRequest",
    "AdmissionResponse",
    "ApiError",
    "Availability",
    "CaInjector",
    "Cache",
    "CacheSyncError",
    "CachedObject",
    "CertificateRotator",
    "Client",
    "Clock",
    "ConfigurationError",
    "ConnectionOptions",
    "Controller",
    "DeleteOptions",
    "EventRecorder",
    "EventType",
    "FileCertificates",
    "Group",
    "Handler",
    "HttpClient",
    "Informer",
    "KubeError",
    "LabelSelector",
    "LeaderElectionOptions",
    "LeadershipLostError",
    "ListOptions",
    "Lister",
    "LogOptions",
    "Manager",
    "ManagerOptions",
    "Metrics",
    "MetricsServer",
    "MetricsServerOptions",
    "Object",
    "ObjectKey",
    "ObjectList",
    "Operation",
    "PatchType",
    "Propagation",
    "Reconcile",
    "Registration",
    "Resource",
    "Result",
    "Selection",
    "SystemClock",
    "TerminalError",
    "TlsOptions",
    "TransportError",
    "WatchEvent",
    "WatchOptions",
    "WebhookServer",
    "WebhookServerOptions",
    "configure_logging",
    "connect",
    "run_until_signal",
    "service_names",
]
