"""The claim that keeps the checkpoints of a TrainJob: whether pods can write there, before it is submitted."""

from __future__ import annotations

import json
import shlex
from typing import Final

from trainer.api.checkpoints import CHECKPOINTS, parse_claim, stated_claim
from trainer.cli.console import note, printable
from trainer.cli.errors import BadInputError
from trainer.cli.similar import did_you_mean
from trainer.kube.client import Client
from trainer.kube.errors import KubeError, NotFoundError
from trainer.kube.objects import Object, is_being_deleted, mapping_at, name_of, namespace_of
from trainer.kube.resource import PERSISTENT_VOLUME_CLAIMS
from trainer.kube.selection import Selection

_OF_ONE_NODE: Final = {"ReadWriteOnce", "ReadWriteOncePod"}
_READ_ONLY: Final = "ReadOnlyMany"


def claim_annotation(option: str) -> dict[str, str]:
    """The annotation for `--checkpoints`; an empty option takes back what the runtime says.

    Raises:
        BadInputError: it names no claim.
    """
    if option:
        try:
            parse_claim(option)
        except ValueError as error:
            raise BadInputError(f"--checkpoints: {printable(option)[:80]}: {error}") from None
    return {CHECKPOINTS: option}


async def warn_of_claim(client: Client, job: Object) -> None:
    """Warn of a claim that is not there, or not for writing on all nodes; it is made by nobody but the user.

    Nothing is said where the user may not look.

    Args:
        client: asks with the rights of the user.
        job: a TrainJob of either version, which is not submitted yet.
    """
    claim = stated_claim(job)
    if claim is None:  # or one that admission refuses
        return
    nodes = mapping_at(job, "spec", "trainer").get("numNodes")
    try:
        problem = await _problem(client, claim.name, namespace_of(job), nodes if isinstance(nodes, int) else 1)
    except KubeError:
        return
    if problem:
        note(problem, kind="warning")


async def _problem(client: Client, name: str, namespace: str, nodes: int) -> str:
    try:
        claim = await client.get(PERSISTENT_VOLUME_CLAIMS, name, namespace)
    except NotFoundError:
        names = [name_of(each) for each in (await client.list(PERSISTENT_VOLUME_CLAIMS, Selection(namespace))).items]
        meant = did_you_mean(name, names)
        missing = f"namespace {namespace} has no PersistentVolumeClaim {name}, and the pods wait until it has one"
        return f"{missing}{f'{meant} This' if meant else '; this'} makes it: {_command(name, namespace, nodes)}"
    if is_being_deleted(claim):
        return f"PersistentVolumeClaim {name} is being deleted, and the pods wait until there is another one"
    modes = {str(mode) for mode in mapping_at(claim, "spec").get("accessModes") or []}
    if modes == {_READ_ONLY}:
        return f"PersistentVolumeClaim {name} is {_READ_ONLY}, which is for reading: take one that can be written to"
    if nodes > 1 and modes and modes <= _OF_ONE_NODE:
        mode = min(modes)
        return (
            f"PersistentVolumeClaim {name} is {mode}, and the TrainJob has {nodes} nodes: unless all pods run on one "
            "machine, some of them never start; take a claim that is ReadWriteMany"
        )
    return ""


def _command(name: str, namespace: str, nodes: int) -> str:
    mode = "ReadWriteMany" if nodes > 1 else "ReadWriteOnce"
    claim = {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": {"name": name},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "100Gi"}}},
    }
    text = shlex.quote(json.dumps(claim, separators=(",", ":")))
    return f"echo {text} | kubectl create -n {namespace} -f -"
