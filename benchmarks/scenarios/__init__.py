"""The scenarios, one module for each question."""

from __future__ import annotations

from benchmarks.scenarios.latency import LATENCY
from benchmarks.scenarios.load import LOAD
from benchmarks.scenarios.memory import MEMORY
from benchmarks.scenarios.reconciles import RECONCILES
from benchmarks.scenarios.recovery import RECOVERY
from benchmarks.scenarios.watch_events import WATCH_EVENTS

SCENARIOS = (MEMORY, WATCH_EVENTS, LOAD, RECONCILES, LATENCY, RECOVERY)
