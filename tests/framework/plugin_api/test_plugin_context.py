"""What a plugin is made with."""

from __future__ import annotations

import pytest

from tests.framework.static_reader import StaticReader
from trainer.api.invalid_object import InvalidObjectError
from trainer.api.model import ApiModel
from trainer.framework.plugin_api.plugin_context import CacheReader, PluginContext
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.informer import Informer
from trainer.kube.objects import Object, ObjectKey, name_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.kube.selection import Selection
from trainer_kube_testing import FakeClient, ManualClock


class Settings(ApiModel):
    """What a plugin gets."""

    cell_size: int = 3


def test_settings() -> None:
    """The configuration becomes a model; what is absent has its default."""
    assert PluginContext(StaticReader()).settings(Settings) == Settings()
    assert PluginContext(StaticReader(), {"cellSize": 5}).settings(Settings) == Settings(cell_size=5)


@pytest.mark.parametrize("configuration", [{"cellSize": "5"}, {"cellsize": 5}], ids=["type", "unknown"])
def test_wrong_settings(configuration: dict[str, object]) -> None:
    """Wrong and unknown fields are refused with their path."""
    with pytest.raises(InvalidObjectError) as caught:
        PluginContext(StaticReader(), configuration).settings(Settings)
    assert [error.field for error in caught.value.errors] == list(configuration)


def test_the_configuration_is_a_mapping() -> None:
    """A plugin may as well look at what was written."""
    assert PluginContext(StaticReader(), {"a": [1]}).configuration == {"a": [1]}


def test_a_configuration_that_nobody_looks_at() -> None:
    """It is known whether the plugin has looked; there is nothing to see in an empty configuration."""
    unread, read = PluginContext(StaticReader(), {"a": 1}), PluginContext(StaticReader(), {"a": 1})
    assert read.configuration
    assert (unread.is_ignored, read.is_ignored) == (True, False)
    assert not PluginContext(StaticReader()).is_ignored


def informer_of(*objects: Object) -> Informer:
    """What a plugin that watches ConfigMaps has in its cache."""
    informer = Informer(FakeClient(), CONFIG_MAPS, clock=ManualClock(), optional=True)
    informer.add_index("by-label", lambda obj: list(obj.labels.values()))
    for obj in objects:
        informer.put(CachedObject.of(obj))
    return informer


def owned(name: str, label: str) -> Object:
    """A ConfigMap with a label and an owner."""
    owner = {"apiVersion": "v1", "kind": "T", "name": "t", "uid": "u", "controller": True}
    return {"metadata": {"namespace": "ns", "name": name, "labels": {"x": label}, "ownerReferences": [owner]}}


def test_reads_what_is_attached() -> None:
    """Objects are found by key, and by namespace and labels."""
    objects = [
        {"metadata": {"namespace": namespace, "name": name, "labels": labels}}
        for namespace, name, labels in (
            ("ns", "a", {"x": "1", "y": "1"}),
            ("ns", "b", {"x": "2"}),
            ("other", "c", {"x": "1"}),
        )
    ]
    reader = CacheReader()
    reader.attach(informer_of(*objects))

    found = reader.get(CONFIG_MAPS, ObjectKey("ns", "a"))

    assert found is not None
    assert name_of(found) == "a"
    assert reader.get(CONFIG_MAPS, ObjectKey("ns", "z")) is None
    assert [name_of(obj) for obj in reader.list(CONFIG_MAPS, "ns", {"x": "1"})] == ["a"]
    assert reader.serves(CONFIG_MAPS)


def test_parts_of_one_resource_are_read_together() -> None:
    """Plugins that watch different parts of a resource do not hide them from each other; what both have counts once."""
    reader = CacheReader()
    plain = Informer(FakeClient(), CONFIG_MAPS, clock=ManualClock())
    parts = [informer_of(owned("a", "1"), owned("b", "1")), informer_of(owned("b", "1"), owned("c", "2"))]
    reader.attach(plain)
    for informer in parts:
        reader.attach(informer, ["by-label"])
        reader.attach(informer)

    assert reader.get(CONFIG_MAPS, ObjectKey("ns", "c")) is not None
    assert sorted(name_of(obj) for obj in reader.list(CONFIG_MAPS, "ns", {"x": "1"})) == ["a", "b"]
    assert reader.keys(CONFIG_MAPS, "by-label", "1") == {ObjectKey("ns", "a"), ObjectKey("ns", "b")}
    assert sorted(name_of(obj) for _, obj in reader.children("u")) == ["a", "b", "c"]
    with pytest.raises(LookupError, match="configmaps have no index other: the plugin's Watch must declare it"):
        reader.keys(CONFIG_MAPS, "other", "1")


async def test_there_is_nothing_of_a_kind_that_is_not_served() -> None:
    """Its objects are not found, which is no mistake of the plugin, and `serves` tells why."""
    informer = informer_of(owned("a", "1"))
    reader = CacheReader()
    reader.attach(informer, ["by-label"])
    assert reader.serves(CONFIG_MAPS)

    await informer.unserved()

    assert not reader.serves(CONFIG_MAPS)
    assert reader.get(CONFIG_MAPS, ObjectKey("ns", "a")) is None
    assert reader.list(CONFIG_MAPS, "ns", {}) == []
    assert reader.keys(CONFIG_MAPS, "by-label", "1") == set()
    assert list(reader.children("u")) == []
    assert not reader.serves(SECRETS)


def test_a_plugin_must_watch_what_it_reads() -> None:
    """Reading a resource that nobody watches is a mistake of the plugin, not an empty answer."""
    with pytest.raises(LookupError, match="secrets are not cached: a plugin that reads or builds them must watch them"):
        CacheReader().get(SECRETS, ObjectKey("ns", "a"))


def test_what_is_selected() -> None:
    """An object is read if any of the informers of its kind selects it."""
    reader = CacheReader()
    for label in ("a", "b"):
        selection = Selection(namespace="ns", label_selector=label)
        reader.attach(Informer(FakeClient(), CONFIG_MAPS, selection, clock=ManualClock()))

    def selects(**labels: str) -> bool:
        return reader.selects(CONFIG_MAPS, {"metadata": {"namespace": "ns", "name": "x", "labels": labels}})

    assert not reader.holds_all(CONFIG_MAPS)
    assert [selects(a="1"), selects(b="1"), selects(c="1"), selects()] == [True, True, False, False]
    assert not reader.selects(SECRETS, {"metadata": {"name": "x"}})
