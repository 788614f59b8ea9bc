"""Validation of `spec.managedBy`, by which Jobs and JobSets name a controller that is not the usual one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trainer.kube.field_errors import invalid, required, too_long
from trainer_devcluster.apiserver.objects.names import subdomain_problems

if TYPE_CHECKING:
    from trainer.kube.field_errors import FieldError

_PATH = "spec.managedBy"
_LIMIT = 63
_SEGMENT = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_SEGMENT_TEXT = f"Invalid path (regex used for validation is '{_SEGMENT.pattern}')"


def validate_manager(manager: str | None) -> list[FieldError]:
    """What keeps a text from being a domain-prefixed path such as `example.com/controller`."""
    if manager is None:
        return []
    too_big = [too_long(_PATH, _LIMIT)] if len(manager) > _LIMIT else []
    return [*_validate_path(manager), *too_big]


def _validate_path(manager: str) -> list[FieldError]:
    if not manager:
        return [required(_PATH)]
    host, _, segment = manager.partition("/")
    if not host or not segment:
        return [invalid(_PATH, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    causes = [invalid(_PATH, host, problem) for problem in subdomain_problems(host)]
    if not _SEGMENT.fullmatch(segment):
        causes.append(invalid(_PATH, segment, _SEGMENT_TEXT))
    return causes
