from __future__ import annotations

from trainer.kube.objects import Object
from trainer.kube.resource import JOBS, PODS
from trainer_devcluster.controllers.job.pods import TRACKING_FINALIZER
from trainer_devcluster.controllers.namespace import with_conditions

NOW, LATER = "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"
HELD = {"metadata": {"name": "a", "finalizers": [TRACKING_FINALIZER]}}
FREE = {"metadata": {"name": "b"}}


def reported(status: Object) -> dict[str, tuple[str, str, str]]:
    return {entry["type"]: (entry["status"], entry["reason"], entry["message"]) for entry in status["conditions"]}


def test_what_is_left_is_reported() -> None:
    """By resource, and the finalizers that hold it."""
    status = with_conditions({"phase": "Terminating"}, {PODS: [HELD, FREE], JOBS: [HELD]}, NOW)
    assert status["phase"] == "Terminating"
    assert reported(status) == {
        "NamespaceDeletionDiscoveryFailure": (
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: jobs.batch has 1 resource instances, pods. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            f"Some content in the namespace has finalizers remaining: {TRACKING_FINALIZER} in 2 resource instances",
        ),
    }


def test_an_empty_namespace() -> None:
    """Conditions of an empty namespace say that nothing remains; only changed ones have a new time."""
    before = with_conditions({}, {PODS: [FREE]}, NOW)
    status = with_conditions(before, {PODS: []}, LATER)
    assert reported(status)["NamespaceContentRemaining"] == (
        "False",
        "ContentRemoved",
        "All content successfully removed",
    )
    assert reported(status)["NamespaceFinalizersRemaining"] == (
        "False",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    )
    changed = [entry["type"] for entry in status["conditions"] if entry["lastTransitionTime"] == LATER]
    assert changed == ["NamespaceContentRemaining"]


def test_nothing_new() -> None:
    """Then nothing is written."""
    status = with_conditions({}, {}, NOW)
    assert with_conditions(status, {}, LATER) == status
