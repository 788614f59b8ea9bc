"""Builders of objects for the tests."""

from __future__ import annotations

from typing import Any

from trainer.kube.objects import Object


def pod(name: str, namespace: str = "ns", **metadata: Any) -> Object:
    """A pod without a spec."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, **metadata}}


def job(name: str, namespace: str = "ns", **metadata: Any) -> Object:
    """A Job without a spec."""
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace, **metadata}}


def owned_by(kind: str, name: str, api_version: str = "batch/v1", *, uid: str = "u", controller: bool = True) -> Object:
    """Owner reference."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": controller}
