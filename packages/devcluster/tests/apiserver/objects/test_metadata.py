"""Object metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from packages.devcluster.tests.apiserver.builders import CONFIG_MAP
from trainer_devcluster.apiserver.objects.metadata import carry_over, initialize, validate, validate_update

if TYPE_CHECKING:
    from trainer.kube.objects import Object

NOW = "2026-01-01T00:00:00Z"


def test_initialize_overwrites_what_the_server_owns() -> None:
    """A client cannot choose uid, times or generation, and empty collections are dropped."""
    given = {
        "name": "a", "uid": "mine", "creationTimestamp": "x", "generation": 7, "deletionTimestamp": "x",
        "resourceVersion": "3", "labels": {}, "annotations": {"k": "v"}, "finalizers": [],
    }  # fmt: skip
    kept = initialize(given, namespace="ns", now=NOW, generation=True)
    uid = kept.pop("uid")
    assert uid not in ("", "mine")
    assert kept == {
        "name": "a", "namespace": "ns", "creationTimestamp": NOW, "generation": 1, "annotations": {"k": "v"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param(
            {"name": "a", "uid": "x", "generation": 9, "deletionTimestamp": None},
            {"name": "a", "uid": "u", "generation": 2, "creationTimestamp": NOW},
            {"name": "a", "uid": "u", "generation": 2, "creationTimestamp": NOW},
            id="server-owned fields stay",
        ),
        pytest.param({"labels": {}, "annotations": {"k": "v"}}, {}, {"annotations": {"k": "v"}}, id="empty maps go"),
        pytest.param(
            {"name": "a"}, {"name": "a", "generateName": "a-"}, {"name": "a", "generateName": "a-"}, id="generateName"
        ),
        pytest.param({"name": "a"}, {"name": "a", "labels": {"k": "v"}}, {"name": "a"}, id="labels can be removed"),
    ],
)
def test_carry_over(new: Object, old: Object, expected: Object) -> None:
    """An update keeps what only the server may change."""
    assert carry_over(new, old) == expected


OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        pytest.param({"name": "a"}, [], id="plain"),
        pytest.param({}, ["metadata.name"], id="no name"),
        pytest.param({"name": "Bad_Name"}, ["metadata.name"], id="bad name"),
        pytest.param({"name": "a", "labels": {"bad key!": "v"}}, ["metadata.labels"], id="bad label key"),
        pytest.param({"name": "a", "labels": {"k": "bad value!"}}, ["metadata.labels"], id="bad label value"),
        pytest.param({"name": "a", "annotations": {"a/b/c": ""}}, ["metadata.annotations"], id="bad annotation key"),
        pytest.param({"name": "a", "annotations": {"UPPER.com/K": ""}}, [], id="annotation keys may be upper case"),
        pytest.param(
            {"name": "a", "annotations": {"k": "x" * 256 * 1024}}, ["metadata.annotations"], id="long annotations"
        ),
        pytest.param({"name": "a", "finalizers": ["not valid!"]}, ["metadata.finalizers"], id="bad finalizer"),
        pytest.param(
            {"name": "a", "ownerReferences": [{**OWNER, "uid": ""}]},
            ["metadata.ownerReferences.uid"],
            id="owner without uid",
        ),
        pytest.param(
            {"name": "a", "ownerReferences": [{**OWNER, "controller": True}, {**OWNER, "controller": True}]},
            ["metadata.ownerReferences"],
            id="two controllers",
        ),
    ],
)
def test_validate(metadata: Object, fields: list[str]) -> None:
    """Each wrong part of the metadata is named."""
    assert [cause.field for cause in validate(metadata, CONFIG_MAP.name_rule)] == fields


@pytest.mark.parametrize(
    ("finalizers", "causes"),
    [
        pytest.param(["example.com/a"], 0, id="kept"),
        pytest.param([], 0, id="removed"),
        pytest.param(["example.com/a", "example.com/b"], 2, id="added: said twice, as the real server does"),
    ],
)
def test_no_new_finalizers_while_being_deleted(finalizers: list[str], causes: int) -> None:
    """Once a deletion is accepted, finalizers can only go."""
    old = {"deletionTimestamp": NOW, "finalizers": ["example.com/a"]}
    assert len(validate_update({"finalizers": finalizers}, old)) == causes
