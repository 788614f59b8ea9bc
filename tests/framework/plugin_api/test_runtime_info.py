"""DNS names of pods."""

from __future__ import annotations

import pytest

from trainer.framework.plugin_api.runtime_info import Endpoints


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
