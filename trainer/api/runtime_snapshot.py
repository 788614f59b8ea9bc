"""Runtime snapshots as they are stored: ConfigMaps with a training runtime as JSON text."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from trainer.kube.json_text import decode_json
from trainer.kube.objects import Object

SNAPSHOT_LABEL: Final = "trainer.kubeflow.org/runtime-snapshot"
"""Label of all snapshots, so that no other ConfigMap has to be cached."""
SNAPSHOT_KEY: Final = "runtime"
"""Member of `data` with the runtime."""

_LARGE = 256 * 1024
"""Bytes; indented text may be three times as long, and a ConfigMap holds 1 MiB."""
_content = msgspec.json.Decoder(Any)


def read_text(text: str) -> Any:
    """The content of a snapshot; raises a ValueError where it is no JSON."""
    return decode_json(_content, text)


def text_of(runtime: Object) -> str:
    """With a line for each value, for people, unless that could be more than a ConfigMap holds."""
    encoded = msgspec.json.encode(runtime)
    return (encoded if len(encoded) > _LARGE else msgspec.json.format(encoded, indent=2)).decode()
