"""Controller machinery in asyncio: client, informer, work queue, controller, manager; knows nothing of training."""

from __future__ import annotations

from trainer.kube.client import (
    Client,
    DeleteOptions,
    EventType,
    ListOptions,
    LogOptions,
    ObjectList,
    PatchType,
    Propagation,
    Selection,
    WatchEvent,
    WatchOptions,
)
from trainer.kube.clock import Clock, SystemClock
from trainer.kube.connection import ConnectionOptions, connect
from trainer.kube.controller import Controller, Reconcile, Result
from trainer.kube.errors import (
    ApiError,
    CacheSyncError,
    ConfigurationError,
    KubeError,
    TerminalError,
    TransportError,
)
from trainer.kube.events import EventRecorder
from trainer.kube.http import HttpClient
from trainer.kube.informer import Handler, Informer
from trainer.kube.logs import configure_logging
from trainer.kube.manager import Manager, ManagerOptions
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.resource import Resource
from trainer.kube.selectors import FieldSelector, LabelSelector
from trainer.kube.store import Lister
from trainer.kube.workqueue import WorkQueue

__all__ = [
    "ApiError",
    "CacheSyncError",
    "Client",
    "Clock",
    "ConfigurationError",
    "ConnectionOptions",
    "Controller",
    "DeleteOptions",
    "EventRecorder",
    "EventType",
    "FieldSelector",
    "Handler",
    "HttpClient",
    "Informer",
    "KubeError",
    "LabelSelector",
    "ListOptions",
    "Lister",
    "LogOptions",
    "Manager",
    "ManagerOptions",
    "Object",
    "ObjectKey",
    "ObjectList",
    "PatchType",
    "Propagation",
    "Reconcile",
    "Resource",
    "Result",
    "Selection",
    "SystemClock",
    "TerminalError",
    "TransportError",
    "WatchEvent",
    "WatchOptions",
    "WorkQueue",
    "configure_logging",
    "connect",
]
