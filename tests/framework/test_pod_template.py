"""Pod templates of runtimes, which the API server stores unchecked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.framework.errors import BuildError
from trainer.framework.pod_template import check_pod_template

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def template(pod: Object | None = None, **container: object) -> Object:
    """A pod template with one container."""
    return {"spec": {"containers": [{"name": "trainer", "image": "i"} | container]} | (pod or {})}


@pytest.mark.parametrize(
    "accepted",
    [
        pytest.param(template(), id="least"),
        pytest.param(template(env=[{"name": "PORT", "value": 29400}, {"name": "A", "valueFrom": {}}]), id="env"),
        pytest.param(template(env=None, args=None, resources=None, pod={"volumes": None}), id="null-is-absent"),
        pytest.param({"metadata": None, **template()}, id="null-metadata"),
        pytest.param(template(livenessProbe={"exec": 1}, pod={"hostIPC": "?"}), id="left-to-kubernetes"),
    ],
)
def test_accepted(accepted: Object) -> None:
    """What can be read is accepted; fields that we never look at are not judged."""
    check_pod_template(accepted, "template")


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        pytest.param({}, "t.spec: is required", id="no-spec"),
        pytest.param({"spec": None}, "t.spec: must be a mapping of fields, got None", id="null-spec"),
        pytest.param({"spec": {"containers": ["a"]}}, "t.spec.containers[0]: must be a mapping", id="container"),
        pytest.param(template(command="a b"), "t.spec.containers[0].command: must be a list, got 'a b'", id="command"),
        pytest.param(template(args=[1]), "t.spec.containers[0].args[0]: must be a string, got 1", id="args"),
        pytest.param(template(env={"A": "b"}), "t.spec.containers[0].env: must be a list", id="env"),
        pytest.param(template(env=[{"value": "b"}]), "t.spec.containers[0].env[0].name: is required", id="env-name"),
        pytest.param(template(ports=[{"containerPort": []}]), "t.spec.containers[0].ports[0].containerPort", id="port"),
        pytest.param(template(volumeMounts=[{}]), "t.spec.containers[0].volumeMounts[0].mountPath: is req", id="mount"),
        pytest.param(
            template(resources={"limits": [1]}), "t.spec.containers[0].resources.limits: must be", id="limits"
        ),
        pytest.param(template({"volumes": [{"name": {}}]}), "t.spec.volumes[0].name: must be a string", id="volume"),
        pytest.param(template({"nodeSelector": ["a"]}), "t.spec.nodeSelector: must be a mapping", id="node-selector"),
        pytest.param(template({"initContainers": {}}), "t.spec.initContainers: must be a list", id="init-containers"),
        pytest.param(
            template() | {"metadata": {"labels": {"version": 1}}}, "t.metadata.labels.version: must be a", id="labels"
        ),
    ],
)
def test_refused(refused: Object, message: str) -> None:
    """What cannot be read is refused with the field and the remedy, instead of ending in a failure of ours."""
    with pytest.raises(BuildError) as caught:
        check_pod_template(refused, "t")
    assert str(caught.value).startswith(message)
