"""Controller machinery in asyncio: client, informer, work queue, controller, manager; knows nothing of training."""

from __future__ import annotations

from trainer.kube.cache import Cache
from trainer.kube.cached_object import CachedObject, ObjectMeta, OwnerReference
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
from trainer.kube.connection import ConnectionOptions, connect
from trainer.kube.controller import Controller
from trainer.kube.errors import (
    ApiError,
    CacheSyncError,
    ConfigurationError,
    KubeError,
    LeadershipLostError,
    TerminalError,
    TransportError,
)
from trainer.kube.events import EventRecorder, EventSender
from trainer.kube.http import HttpClient
from trainer.kube.informer import Informer
from trainer.kube.leader_election import LeaderElectionOptions
from trainer.kube.logs import configure_logging
from trainer.kube.manager import Manager, ManagerOptions
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object, ObjectKey
from trainer.kube.reconcile import Reconcile, Result
from trainer.kube.registration import Handler, Registration
from trainer.kube.resource import Resource
from trainer.kube.selection import EVERYTHING, Selection
from trainer.kube.selectors import FieldSelector, LabelSelector
from trainer.kube.signals import run_until_signal
from trainer.kube.store import Lister
from trainer.kube.supervisor import Group
from trainer.kube.workqueue import WorkQueue

__all__ = [
    "EVERYTHING",
    "ApiError",
    "Cache",
    "CacheSyncError",
    "CachedObject",
    "Client",
    "Clock",
    "ConfigurationError",
    "ConnectionOptions",
    "Controller",
    "DeleteOptions",
    "EventRecorder",
    "EventSender",
    "EventType",
    "FieldSelector",
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
    "Object",
    "ObjectKey",
    "ObjectList",
    "ObjectMeta",
    "OwnerReference",
    "PatchType",
    "Propagation",
    "Reconcile",
    "Registration",
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
    "run_until_signal",
]
