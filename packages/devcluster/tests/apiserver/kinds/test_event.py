from __future__ import annotations

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, fields
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.event import EventStrategy


def make_event(namespace: str, about: str | None) -> Object:
    involved = {"kind": "Job", "name": "j", **({"namespace": about} if about else {})}
    return {"metadata": {"name": "e", "namespace": namespace}, "involvedObject": involved}


@pytest.mark.parametrize(
    ("namespace", "about", "accepted"),
    [
        pytest.param("n", "n", True, id="same namespace"),
        pytest.param("n", "m", False, id="other namespace"),
        pytest.param("default", None, True, id="cluster-scoped object"),
        pytest.param("n", None, False, id="cluster-scoped object elsewhere"),
    ],
)
def test_event_stands_with_its_object(namespace: str, about: str | None, accepted: bool) -> None:
    """Events about cluster-scoped objects are in the namespace default."""
    _, causes = created(EventStrategy(), make_event(namespace, about))
    assert fields(causes) == ([] if accepted else ["involvedObject.namespace"])
