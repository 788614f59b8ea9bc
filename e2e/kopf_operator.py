"""An operator as people write them with kopf: it answers ConfigMaps that ask something; `kopf run` loads it."""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.create("configmaps", labels={"ask": kopf.PRESENT})
def answer(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
    """Write the answer into the object, and an event."""
    patch.setdefault("data", {})["answer"] = f"hello {body['data']['question']}"
    kopf.info(body, reason="Answered", message="the question has been answered")


@kopf.on.delete("configmaps", labels={"ask": kopf.PRESENT})
def forget(name: str, logger: kopf.Logger, **_: Any) -> None:
    """Runs because kopf has put a finalizer on the object."""
    logger.info("forgot %s", name)
