"""What has changed between two looks at trainings, and what the managers have written meanwhile."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from e2e import audit

Object = dict[str, Any]
OURS = r"\.metadata\.annotations\.trainer\.kubeflow\.org/"
HASHES = rf"JobSet/(waiting|paused|stopping)[a-z-]*{OURS}(applied|fixed|spec)-hash: "
"""What each version writes of JobSets that are suspended: how it would build them."""
_QUIET_SECONDS = 3
_VOLATILE = {"resourceVersion", "managedFields"}
_READING = {"get", "list", "watch"}
_CLUSTER = "trainer-devcluster"
"""The field manager of the controllers and nodes of the dev cluster."""


def changes(before: Mapping[str, Object], after: Mapping[str, Object]) -> set[str]:
    """Paths, such as `JobSet/a.spec.suspend`, of what differs of the objects of before; they may be gone."""
    return {
        path
        for key, obj in before.items()
        for path in (_differences(key, _kept(obj), _kept(after[key])) if key in after else [f"{key} is gone"])
    }


def unexpected(found: Iterable[str], *patterns: str) -> list[str]:
    """What fits none of the patterns."""
    return sorted(each for each in found if not any(re.match(pattern, each) for pattern in patterns))


def _kept(obj: Object) -> Object:
    """What has to stay of an object: of Jobs, pods and Services, no more than which they are."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _VOLATILE}
    entries = obj["metadata"].get("managedFields") or ()
    # The cluster writes the status of what it runs at times of its own.
    writers = sorted({f"{each['manager']} {each['operation']}" for each in entries if each["manager"] != _CLUSTER})
    status = obj.get("status") or {}
    match obj["kind"]:
        case "Pod":
            restarts = {each["name"]: each["restartCount"] for each in status.get("containerStatuses") or ()}
            return {"uid": metadata["uid"], "restarts": restarts, "spec": obj["spec"]}
        case "Job" | "Service":
            return {"uid": metadata["uid"], "spec": obj["spec"]}
        case "JobSet":
            return {"metadata": metadata, "writers": writers, "spec": obj["spec"], "restarts": status.get("restarts")}
        case "ConfigMap" | "Secret":
            return {"metadata": obj["metadata"], "data": obj.get("data")}
        case "TrainJob":
            return {"metadata": metadata, "writers": writers, "spec": obj["spec"], "status": status}
        case _:
            return {"metadata": metadata, "writers": writers, "spec": obj["spec"]}


def _differences(path: str, before: Any, after: Any) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() | after.keys():
            yield from _differences(f"{path}.{name}", before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(f"{path}[{index}]", one, other)
    elif before != after:
        yield f"{path}: {str(before)[:200]} => {str(after)[:200]}"


class Writes:
    """What managers have written in a namespace since the last look, from an audit log."""

    def __init__(self, log: Path, namespace: str) -> None:
        self._log, self._namespace, self._seen = log, namespace, 0

    def settled(self) -> Counter[str]:
        """Wait until nothing is written any more; returns verb, resource and name of each write.

        Events are left out, and dry runs, which store nothing.
        """
        found: Counter[str] = Counter()
        while True:
            time.sleep(_QUIET_SECONDS)
            new = self._new()
            found += new
            if not new:
                return found

    def _new(self) -> Counter[str]:
        requests = [each for each in audit.requests_of_manager(self._log) if each.verb not in _READING]
        new, self._seen = requests[self._seen :], len(requests)
        assert [each for each in new if each.is_refused] == []
        return Counter(
            f"{each.verb} {each.resource} {each.name}"
            for each in new
            if each.namespace == self._namespace and each.resource != "events" and not each.name.startswith("dry-run-")
        )
