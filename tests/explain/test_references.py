"""The objects that a pod names."""

from __future__ import annotations

from trainer.explain.references import references

SPEC = {
    "serviceAccountName": "trainer",
    "priorityClassName": "urgent",
    "runtimeClassName": "nvidia",
    "imagePullSecrets": [{"name": "pull"}],
    "volumes": [
        {"name": "a", "configMap": {"name": "settings"}},
        {"name": "b", "secret": {"secretName": "keys", "optional": True}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "d", "projected": {"sources": [{"secret": {"name": "certificate"}}, {"configMap": {"name": "ca"}}]}},
        {"name": "e", "emptyDir": {}},
    ],
    "initContainers": [
        {"name": "first", "envFrom": [{"secretRef": {"name": "env"}}, {"configMapRef": {"name": "more"}}]}
    ],
    "containers": [
        {
            "name": "trainer",
            "env": [
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "token", "key": "k"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "maybe", "key": "k", "optional": True}}},
            ],
        }
    ],
}


def test_references() -> None:
    """All that the pod cannot start without, with the fields that name them."""
    assert [(each.resource.kind, each.name, each.field) for each in references(SPEC)] == [
        ("ServiceAccount", "trainer", "serviceAccountName"),
        ("PriorityClass", "urgent", "priorityClassName"),
        ("RuntimeClass", "nvidia", "runtimeClassName"),
        ("Secret", "pull", "imagePullSecrets"),
        ("ConfigMap", "settings", "volumes[a].configMap"),
        ("PersistentVolumeClaim", "data", "volumes[c].persistentVolumeClaim"),
        ("Secret", "certificate", "volumes[d].projected"),
        ("ConfigMap", "ca", "volumes[d].projected"),
        ("Secret", "env", "initContainers[first].envFrom"),
        ("ConfigMap", "more", "initContainers[first].envFrom"),
        ("Secret", "token", "containers[trainer].env[B]"),
    ]


def test_nonsense_names_nothing() -> None:
    """Nobody has validated it."""
    assert not list(references({"volumes": "x", "containers": [{"env": [{"valueFrom": 3}]}], "imagePullSecrets": [{}]}))
