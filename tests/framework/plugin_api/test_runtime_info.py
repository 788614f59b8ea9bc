"""DNS names of pods."""

from __future__ import annotations

import pytest

from trainer.framework.plugin_api.runtime_info import Endpoints, Key, by_mount_path, by_name, by_port, upsert
from trainer.kube.objects import Object


def test_a_sequence_of_names() -> None:
    """They are numbered by Job and pod, and can be read like any other sequence."""
    names = Endpoints("demo-node", "ring", replicas=2, pods=2)
    assert list(names) == ["demo-node-0-0.ring", "demo-node-0-1.ring", "demo-node-1-0.ring", "demo-node-1-1.ring"]
    assert names[-1] == "demo-node-1-1.ring"
    assert names[1:3] == ("demo-node-0-1.ring", "demo-node-1-0.ring")
    assert "demo-node-1-0.ring" in names
    with pytest.raises(IndexError):
        names[4]


def test_none_at_all() -> None:
    """A replicated Job without pods has no names."""
    assert list(Endpoints("demo-node", "ring", replicas=1, pods=0)) == []


@pytest.mark.parametrize(
    ("key", "items", "additions", "expected"),
    [
        pytest.param(by_name, [{"name": "a"}], [{"name": "b"}], [{"name": "a"}, {"name": "b"}], id="append"),
        pytest.param(
            by_name, [], [{"name": "a", "v": 1}, {"name": "a", "v": 2}], [{"name": "a", "v": 2}], id="last-wins"
        ),
        pytest.param(
            by_mount_path,
            [{"name": "v", "mountPath": "/a"}],
            [{"name": "v", "mountPath": "/b"}],
            [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
            id="one-volume-at-two-paths",
        ),
        pytest.param(
            by_port,
            [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
            [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53}],
            [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}],
            id="unnamed-ports-differ-by-number-and-protocol",
        ),
    ],
)
def test_upsert(key: Key, items: list[Object], additions: list[Object], expected: list[Object]) -> None:
    """An entry with the same key is replaced where it stands; others are appended."""
    upsert(items, additions, key)
    assert items == expected
