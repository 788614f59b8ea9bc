"""Which calls of the client a scenario makes by itself."""

from __future__ import annotations

from inspect import isfunction
from typing import Any

from kubeflow.training import TrainingClient


class Recorder:
    """Hands on to a client what is asked of it."""

    def __init__(self, client: TrainingClient) -> None:
        self._client = client
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name in PUBLIC_CALLS:
            self.called.add(name)
        return getattr(self._client, name)


PUBLIC_CALLS = sorted(name for name, value in vars(TrainingClient).items() if isfunction(value) and name[0] != "_")
"""All calls that the client has."""
