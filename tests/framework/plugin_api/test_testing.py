"""The cluster that stands still, for tests of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.framework.plugin_api.testing import StaticReader
from trainer.kube.objects import ObjectKey
from trainer.kube.resource import CONFIG_MAPS, Resource

if TYPE_CHECKING:
    from trainer.framework.plugin_api.plugin_context import Reader
    from trainer.kube.objects import Object

GANGS = Resource("gang.example.com", "v1", "gangs", "Gang")


def obj(kind: str, name: str, **metadata: object) -> Object:
    """An object of namespace `team`."""
    return {"kind": kind, "metadata": {"name": name, "namespace": "team"} | metadata}


def test_reading() -> None:
    """Objects are found by key, by labels and by indexes, as in the caches of the manager."""
    blue = obj("ConfigMap", "blue", labels={"colour": "blue"})
    reader: Reader = StaticReader(blue, obj("ConfigMap", "red"), indexes={"name": lambda each: [each.key.name]})

    assert reader.get(CONFIG_MAPS, ObjectKey("team", "blue")) == blue
    assert reader.get(CONFIG_MAPS, ObjectKey("other", "blue")) is None
    assert reader.get(GANGS, ObjectKey("team", "blue")) is None
    assert reader.list(CONFIG_MAPS, "team", {"colour": "blue"}) == [blue]
    assert reader.keys(CONFIG_MAPS, "name", "red") == {ObjectKey("team", "red")}
    assert reader.keys(CONFIG_MAPS, "no-such-index", "red") == set()


def test_children() -> None:
    """Children of every kind are found by the uid of their controller."""
    owner = {"uid": "1", "controller": True}
    child, gang = obj("ConfigMap", "a", ownerReferences=[owner]), obj("Gang", "b", ownerReferences=[owner])
    reader = StaticReader(child, gang, obj("ConfigMap", "c"), resources=[GANGS])
    assert list(reader.children("1")) == [(CONFIG_MAPS, child), (GANGS, gang)]


def test_kinds_that_are_not_installed() -> None:
    """They can be installed while the test runs."""
    reader = StaticReader(unserved=[GANGS])
    assert (reader.serves(CONFIG_MAPS), reader.serves(GANGS)) == (True, False)
    reader.unserved.clear()
    assert reader.serves(GANGS)
