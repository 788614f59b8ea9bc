"""Where the fields of what is built come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from trainer.cli.offline.origins import Origins
from trainer.framework.plugin_api.component import Component
from trainer.workloads import JOBSETS


def component(**pod: Any) -> Component:
    """An object with one pod template."""
    return Component(JOBSETS, {"metadata": {"name": "demo"}, "spec": {"suspend": False, "template": pod}})


def explained(*steps: tuple[str, dict[str, Any]]) -> list[str]:
    """The lines of the template after these steps, as `field  # origin`."""
    built = [(origin, [component(**pod)]) for origin, pod in steps]
    (last,) = built[-1][1]
    text = Origins(built).annotated(last)
    assert yaml.safe_load(text) == last.object, "comments do not change what is read"
    return [line.removeprefix("    ") for line in text[text.index("template:\n") :].splitlines()[1:]]


def test_the_last_change_counts() -> None:
    """The origin of a field is the step that gave it its value; repeating a value is no change."""
    assert explained(
        ("runtime", {"image": "a", "workingDir": "/w", "tty": False}),
        ("TrainJob", {"image": "b", "workingDir": "/w", "tty": False}),
        ("plugin", {"image": "b", "workingDir": "/w", "tty": True}),
    ) == ["image: b  # TrainJob", "tty: true  # plugin", "workingDir: /w  # runtime"]


def test_what_is_outside_of_templates_is_not_explained() -> None:
    """Name, kind and suspension of an object say themselves where they come from."""
    built = component(image="a")

    assert Origins([("runtime", [built])]).annotated(built).count("#") == 1


def test_items_are_known_by_name() -> None:
    """What is inserted before an item of a list does not change where that comes from."""
    first, second, third = ({"name": name, "value": "1"} for name in "abc")

    assert explained(
        ("runtime", {"env": [first, second]}), ("plugin", {"env": [third, first, second | {"value": "2"}]})
    ) == [
        "env:",
        "- name: c  # plugin",
        "  value: '1'  # plugin",
        "- name: a  # runtime",
        "  value: '1'  # runtime",
        "- name: b  # runtime",
        "  value: '2'  # plugin",
    ]


def test_each_list_has_its_key() -> None:
    """Mounts are known by their path, ports by number and protocol, sources of variables by what they name."""
    mounts = [{"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "v"}]
    ports = [{"containerPort": 1, "name": "http"}, {"containerPort": 1, "protocol": "UDP"}]
    sources = [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "s"}}]
    tolerations = [{"key": "gpu"}, {"operator": "Exists"}]

    lines = explained(
        (
            "runtime",
            {"volumeMounts": mounts[1:], "ports": ports[1:], "envFrom": sources[1:], "tolerations": tolerations[1:]},
        ),
        ("plugin", {"volumeMounts": mounts, "ports": ports, "envFrom": sources, "tolerations": tolerations}),
    )

    assert [line for line in lines if "runtime" in line] == [
        "    name: s  # runtime",
        "- containerPort: 1  # runtime",
        "  protocol: UDP  # runtime",
        "- operator: Exists  # runtime",
        "- mountPath: /b  # runtime",
        "  name: v  # runtime",
    ]
    assert [line for line in lines if "plugin" in line] == [
        "    name: s  # plugin",
        "- containerPort: 1  # plugin",
        "  name: http  # plugin",
        "- key: gpu  # plugin",
        "- mountPath: /a  # plugin",
        "  name: v  # plugin",
    ]


def test_items_without_a_key() -> None:
    """Items that nothing tells apart are known by their position."""
    assert explained(
        ("runtime", {"rules": [{"action": "a"}, {"action": "b"}]}),
        ("plugin", {"rules": [{"action": "a"}, {"action": "c"}]}),
    ) == ["rules:", "- action: a  # runtime", "- action: c  # plugin"]


def test_lists_of_texts_are_one_field() -> None:
    """The last layer that sets a command replaces it; the comment is at the field."""
    assert explained(
        ("runtime", {"command": ["a"], "args": []}), ("TrainJob", {"command": ["a", "b"], "args": []})
    ) == ["args: []  # runtime", "command:  # TrainJob", "- a", "- b"]


def test_texts_of_several_lines() -> None:
    """The comment stands behind the sign that begins the text."""
    assert explained(("runtime", {"script": "one: 1\ntwo # 2\n", "empty": {}})) == [
        "empty: {}  # runtime",
        "script: |  # runtime",
        "  one: 1",
        "  two # 2",
    ]


def test_a_step_after_which_nothing_can_be_built() -> None:
    """A builder that is not ready before a later step leaves the changes to that step."""
    last = component(image="a", port=1)
    origins = Origins([("runtime", [component(image="a")]), ("early", []), ("late", [last])])

    assert "port: 1  # late" in origins.annotated(last)


def test_objects_that_change_afterwards() -> None:
    """A builder may hand out what the next step changes in place."""
    shared = component(env=[{"name": "a", "value": "1"}])

    def steps() -> Iterator[tuple[str, list[Component]]]:
        yield "runtime", [shared]
        shared.object["spec"]["template"]["env"].append({"name": "b", "value": "2"})
        yield "plugin", [shared]

    origins = Origins(steps())

    assert origins.annotated(shared).count("# runtime") == 2
    assert origins.annotated(shared).count("# plugin") == 2
