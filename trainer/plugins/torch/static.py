"""A fixed number of PyTorch nodes, with rendezvous at the first one and the completion index as rank.

**One node** needs no meeting point: `PET_STANDALONE=1` lets it meet itself on a free port of its own, so it waits for
no DNS record, and pods in the network of their host do not collide. The KEP writes "when `numProcPerNode > 0` and
`numNodes=0`", which is a runtime that speaks of processes but not of nodes. Admission fills in `numNodes: 1` there, so
that what was left out is no longer seen; what counts is the number of nodes that the TrainJob ends up with. The value
is 1 because torchrun reads the variables of flags as integers.

torchrun obeys that flag before all options that say where to meet, even those of its command line, which cannot take it
back. So it is not set where somebody names a meeting point: a node may meet others that this TrainJob does not know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.framework import NODE_RANK, RENDEZVOUS_PORT, trainer_env

if TYPE_CHECKING:
    from trainer.api.trainjob import TrainJob
    from trainer.framework import RuntimeInfo
    from trainer.kube.objects import Object

_MEETING_POINT_VARIABLES = frozenset({"PET_RDZV_BACKEND", "PET_RDZV_ENDPOINT"})
_MEETING_POINT_OPTION = re.compile(r"--(rdzv|master)[-_]")
"""The beginning of `--rdzv-endpoint`, `--master_addr` and so on, also within a line for a shell."""


def rendezvous(info: RuntimeInfo, train_job: TrainJob) -> list[Object]:
    """The variables of the rendezvous.

    Args:
        info: how many nodes there are, and what they run.
        train_job: may say where they meet, with variables of its own.
    """
    variables: list[Object] = [
        {"name": "PET_NODE_RANK", "valueFrom": NODE_RANK},
        {"name": "PET_MASTER_ADDR", "value": info.head_address()},
        {"name": "PET_MASTER_PORT", "value": str(RENDEZVOUS_PORT)},
    ]
    if info.trainer.count == 1 and not _names_meeting_point(info, train_job):
        variables.append({"name": "PET_STANDALONE", "value": "1"})
    return variables


def _names_meeting_point(info: RuntimeInfo, train_job: TrainJob) -> bool:
    container = info.main_container
    names = {variable["name"] for variable in (*container.env, *trainer_env(train_job))}
    words = (*container.command, *container.args)
    return bool(names & _MEETING_POINT_VARIABLES) or any(map(_MEETING_POINT_OPTION.search, words))
