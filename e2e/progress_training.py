"""Trainings that tell how far they are: scripts for pods, put together from what the tests say in few words."""

from __future__ import annotations

import textwrap
from typing import Any

from e2e.cluster import train_job

_PRELUDE = """
import json, os, sys, time

TAG = "[trainer.kubeflow.org/v2alpha1/trainjob/trainerStatus]"

def write(data):
    os.write(1, data if isinstance(data, bytes) else data.encode())

def say(**fields):
    write(TAG + " " + json.dumps(fields) + "\\n")

def live_on():
    time.sleep(300)
"""
"""What the scripts have at hand; writes are not buffered, and each is one system call."""


def script(body: str) -> str:
    """The text of a Python program: `say(**fields)` reports, `write` prints as is, `live_on()` keeps the pod."""
    return _PRELUDE + textwrap.dedent(body)


def training(name: str, body: str, **spec: Any) -> dict[str, Any]:
    """A TrainJob whose nodes run such a program; `spec` are further fields, see `train_job`."""
    return train_job(name, script(body), **spec)
