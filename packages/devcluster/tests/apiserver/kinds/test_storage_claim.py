from __future__ import annotations

from copy import deepcopy

from packages.devcluster.tests.apiserver.kinds.context import created, fields, updated
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.storage_claim import PersistentVolumeClaimStrategy


def make_claim() -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "c"}, "spec": spec}


def test_claim_may_only_grow() -> None:
    """The volume behind a claim is not exchanged."""
    old, causes = created(PersistentVolumeClaimStrategy(), make_claim())
    assert causes == []
    assert (old["spec"]["volumeMode"], old["status"]) == ("Filesystem", {"phase": "Pending"})
    larger, other = deepcopy(old), deepcopy(old)
    larger["spec"]["resources"]["requests"]["storage"] = "2Gi"
    other["spec"]["accessModes"] = ["ReadWriteMany"]
    assert updated(PersistentVolumeClaimStrategy(), larger, old) == []
    assert fields(updated(PersistentVolumeClaimStrategy(), other, old)) == ["spec"]


def test_empty_claim_is_refused() -> None:
    """A claim says how it is accessed and how large it is."""
    _, causes = created(PersistentVolumeClaimStrategy(), {"metadata": {"name": "c"}, "spec": {}})
    assert fields(causes) == ["spec.accessModes", "spec.resources[storage]"]
