"""Pod templates of runtimes, checked before anything reads them."""

from __future__ import annotations

import pytest

from trainer.framework.building.pod_template import check_pod_template
from trainer.framework.plugin_api.errors import BuildError


def test_accepted() -> None:
    """A template that can become pods passes; a number in env is one that the KEP's examples have."""
    env = [{"name": "MASTER_PORT", "value": 29400}]
    check_pod_template({"metadata": None, "spec": {"containers": [{"name": "trainer", "env": env, "args": None}]}}, "t")


def test_refused() -> None:
    """Everything that is wrong is in one error, each part with its field."""
    containers = [{"name": "trainer", "command": "a b", "livenessProbe": {"exec": 1}}]
    with pytest.raises(BuildError) as caught:
        check_pod_template({"spec": {"containers": containers, "hostIPC": "?"}}, "t")
    assert [str(error) for error in caught.value.errors] == [
        't.spec.containers[0].command: Invalid value: "a b": must be a list',
        "t.spec.containers[0].livenessProbe.exec: Invalid value: 1: must be a mapping of fields",
        't.spec.hostIPC: Invalid value: "?": must be true or false',
    ]
