"""Conditions of custom resource definitions: which names they get, and whether they are served.

Names are given in the order in which definitions ask for them, group by group; who comes later keeps what it has. The
reasons and texts are those of the naming and establishing controllers of the API server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trainer.kube.objects import find_condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainer.kube.objects import Object


class TakenNames(NamedTuple):
    """Names that others in the API group have."""

    resources: frozenset[str]
    """Plural, singular and short names."""
    kinds: frozenset[str]
    """Kinds of objects and lists."""

    @classmethod
    def of(cls, accepted: Iterable[Object]) -> TakenNames:
        """The names in `status.acceptedNames` of other definitions, or in the same form."""
        resources: set[str] = set()
        kinds: set[str] = set()
        for names in accepted:
            resources |= {names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())}
            kinds |= {names.get("kind") or "", names.get("listKind") or ""}
        return cls(frozenset(resources - {""}), frozenset(kinds - {""}))


def status_of(crd: Object, taken: TakenNames, now: str) -> Object:
    """The status of a definition: the names that it gets, and the conditions that follow.

    Args:
        crd: the definition as it is stored.
        taken: names of the others in its group.
        now: time for conditions that change.
    """
    old = crd.get("status") or {}
    names, conflict = _accepted(crd["spec"]["names"], old.get("acceptedNames") or {}, taken)
    accepted = conflict or ("NoConflicts", "no conflicts found")
    conditions = [_condition(crd, "NamesAccepted", "False" if conflict else "True", accepted, now)]
    if conflict is None or is_established(crd):
        established = ("InitialNamesAccepted", "the initial names have been accepted")
        conditions.append(_condition(crd, "Established", "True", established, now))
    else:
        conditions.append(_condition(crd, "Established", "False", ("NotAccepted", "not all names are accepted"), now))
    return {**old, "conditions": conditions, "acceptedNames": names}


def is_established(crd: Object) -> bool:
    """Whether a definition has ever been served."""
    condition = find_condition(crd, "Established")
    return condition is not None and condition.get("status") == "True"


def terminating(crd: Object, now: str) -> Object:
    """The condition of a definition whose objects are being deleted."""
    because = ("InstanceDeletionInProgress", "CustomResource deletion is in progress")
    return _condition(crd, "Terminating", "True", because, now)


def _accepted(wanted: Object, old: Object, taken: TakenNames) -> tuple[Object, tuple[str, str] | None]:
    """The names that a definition gets, and the last of the reasons why it does not get others."""
    names, conflict = dict(old), None
    names.setdefault("plural", "")
    names.setdefault("kind", "")
    for field, reason, others in (
        ("plural", "PluralConflict", taken.resources),
        ("singular", "SingularConflict", taken.resources),
        ("shortNames", "ShortNamesConflict", taken.resources),
        ("kind", "KindConflict", taken.kinds),
        ("listKind", "ListKindConflict", taken.kinds),
    ):
        value = wanted.get(field)
        asked = value if isinstance(value, list) else [value]
        known = old.get(field) or []
        kept = known if isinstance(known, list) else [known]
        problems = [f'"{name}" is already in use' for name in asked if name in others and name not in kept]
        if problems:
            conflict = reason, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        elif value:
            names[field] = value
        else:
            names.pop(field, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    return names, conflict


def _condition(crd: Object, kind: str, value: str, because: tuple[str, str], now: str) -> Object:
    old = find_condition(crd, kind)
    since = old["lastTransitionTime"] if old is not None and old.get("status") == value else now
    return {"type": kind, "status": value, "lastTransitionTime": since, "reason": because[0], "message": because[1]}
