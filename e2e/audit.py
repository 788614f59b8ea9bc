"""The requests of the manager to the API servers of this run, from their audit logs.

All dev clusters of a run, whoever starts them, append to one file: the environment of this process names it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.identity import ACCOUNT, NAMESPACE

VARIABLE = "TRAINER_AUDIT_LOG_PATH"
"""Where dev clusters look for the path of their audit log."""
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
_REFUSED_BY_RBAC = re.compile(r" cannot [a-z]+ (resource|path) ")
"""Quota, namespaces that go away and webhooks refuse with the same code, and in other words."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the manager."""

    verb: str
    group: str
    resource: str
    """Plural, with a slash before its subresource; the path where it is for no resource."""
    namespace: str
    name: str
    code: int
    message: str
    """Of a refusal; "" otherwise."""

    @property
    def is_refused(self) -> bool:
        """Whether no role allows it."""
        return self.code == 403 and _REFUSED_BY_RBAC.search(self.message) is not None


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb of a rule, for one of its resources."""

    verb: str
    group: str
    resource: str
    names: tuple[str, ...] = ()
    """Of the only objects that it counts for; without any for all."""
    namespace: str = ""
    """The only one that it counts in; "" for all."""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        names = f" named {' or '.join(self.names)}" if self.names else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{names}{place}"

    def allows(self, request: Request) -> bool:
        """Whether the request needs this, or something else that allows the same."""
        return (
            (self.group, self.resource) == (request.group, request.resource)
            and self.verb in _needed(request)
            and self.namespace in {"", request.namespace}
            and (not self.names or request.name in self.names)
        )


def _needed(request: Request) -> Sequence[str]:
    """A patch that has made its object has needed `create`, too."""
    return ("patch", "create") if request.verb == "patch" and request.code == 201 else (request.verb,)


def requests_of_manager(log: Path, account: str = USER) -> Iterator[Request]:
    """All requests in an audit log that came from the account of the manager and have been answered.

    A kube-apiserver may also tell that a request has come, and may still be writing the last line.
    """
    marker = account.encode()
    with log.open("rb") as lines:
        for line in lines:
            if marker in line and line.endswith(b"\n"):
                event = json.loads(line)
                user = (event.get("impersonatedUser") or event["user"]).get("username")
                if user == account and "responseStatus" in event:
                    yield _request(event)


def grants_of(roles: Sequence[dict[str, Any]]) -> Iterator[Grant]:
    """What roles allow, one verb of one resource at a time."""
    for role in roles:
        namespace = NAMESPACE if role["kind"] == "Role" else ""
        for rule in role["rules"]:
            names = tuple(rule.get("resourceNames") or ())
            for group in rule.get("apiGroups") or ():
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield Grant(verb, group, resource, names, namespace)


def log_of_run() -> Path | None:
    """The audit log of this run; None where there is none."""
    named = os.environ.get("E2E_AUDIT_LOG") if "E2E_KUBECONFIG" in os.environ else os.environ.get(VARIABLE)
    return Path(named) if named else None


def _request(event: dict[str, Any]) -> Request:
    target, status = event.get("objectRef") or {"resource": event["requestURI"]}, event["responseStatus"]
    subresource = target.get("subresource")
    return Request(
        event["verb"],
        target.get("apiGroup", ""),
        f"{target['resource']}/{subresource}" if subresource else target["resource"],
        target.get("namespace", ""),
        target.get("name", ""),
        status.get("code", 0),
        status.get("message", ""),
    )
