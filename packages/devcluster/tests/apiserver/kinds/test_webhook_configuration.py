"""Webhook configurations: defaults and validation."""

from __future__ import annotations

from typing import Any

import pytest

from packages.devcluster.tests.apiserver.admission.configurations import (
    MUTATING,
    configuration,
    rule,
    webhook,
)
from packages.devcluster.tests.apiserver.http_client import Api
from packages.devcluster.tests.apiserver.kinds.context import make_context
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.webhook_configuration import (
    MUTATING_WEBHOOK_CONFIGURATION,
)

CONTEXT = make_context()
SERVICE: Object = {"service": {"name": "s", "namespace": "n"}}


def problems(entry: Object) -> list[str]:
    """What is wrong with a mutating webhook, defaults filled in."""
    obj = configuration(MUTATING, "c", entry)
    strategy = MUTATING_WEBHOOK_CONFIGURATION.strategy
    strategy.default(obj, CONTEXT)
    return [str(cause) for cause in strategy.validate(obj, CONTEXT)]


def service(**fields: Any) -> Object:
    return {"clientConfig": {"service": {"name": "s", "namespace": "n", **fields}}}


def client(url: str) -> Object:
    return {"clientConfig": {"url": url}}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"name": ""}, "webhooks[0].name: Required value", id="no name"),
        pytest.param(
            {"name": "a.b"},
            'webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by dots',
            id="short name",
        ),
        pytest.param({"name": "A.b.c"}, 'webhooks[0].name: Invalid value: "A.b.c": a lowercase RFC 1123', id="name"),
        pytest.param(
            {"failurePolicy": "x"},
            'webhooks[0].failurePolicy: Unsupported value: "x": supported values: "Fail", "Ignore"',
            id="failure policy",
        ),
        pytest.param(
            {"sideEffects": None},
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            id="no side effects",
        ),
        pytest.param(
            {"timeoutSeconds": 31},
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            id="timeout",
        ),
        pytest.param(
            {"admissionReviewVersions": ["v2"]},
            'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include v1',
            id="unknown versions",
        ),
        pytest.param(
            {"clientConfig": {}},
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            id="no client",
        ),
        pytest.param(
            client("http://x"),
            "webhooks[0].clientConfig.url: Invalid value: \"http://x\": 'https' is the only allowed URL scheme; "
            "desired format: https://host[/path]",
            id="scheme",
        ),
        pytest.param(service(name=""), "webhooks[0].clientConfig.service.name: Required value", id="service name"),
        pytest.param(
            {"matchConditions": [{"name": "", "expression": "true"}]},
            "webhooks[0].matchConditions[0].name: Required value",
            id="condition without name",
        ),
        pytest.param(
            {"matchConditions": [{"name": "a", "expression": " "}]},
            "webhooks[0].matchConditions[0].expression: Required value",
            id="condition without expression",
        ),
        pytest.param(
            {"matchConditions": [{"name": "a", "expression": "objct.x"}]},
            'webhooks[0].matchConditions[0].expression: Invalid value: "objct.x": compilation failed: ERROR: '
            "<input>:1:6: undeclared reference to 'objct.x' (in container '')\n | objct.x\n | .....^",
            id="expression",
        ),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` "
            "is 'In' or 'NotIn'",
            id="selector without values",
        ),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}},
            "webhooks[0].objectSelector.matchExpressions[0].values: Forbidden: may not be specified when `operator` is "
            "'Exists' or 'DoesNotExist'",
            id="selector with values",
        ),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
            'webhooks[0].namespaceSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector '
            "operator",
            id="selector operator",
        ),
    ],
)  # fmt: skip
def test_invalid_webhooks(fields: dict[str, Any], expected: str) -> None:
    """The message is the real server's, with the field path."""
    found = problems({**webhook(), **fields})
    assert [text[: len(expected)] for text in found] == [expected], found


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"operations": ["create"]},
            'operations[0]: Unsupported value: "create": supported values: "*", "CONNECT", "CREATE", "DELETE", '
            '"UPDATE"',
            id="operation",
        ),
        pytest.param({"apiGroups": []}, "apiGroups: Required value", id="no groups"),
    ],
)  # fmt: skip
def test_invalid_rules(fields: dict[str, Any], expected: str) -> None:
    """Rules that match nothing are refused."""
    assert problems(webhook(rules=[{**rule(), **fields}])) == [f"webhooks[0].rules[0].{expected}"]


def test_names_are_unique() -> None:
    """Two webhooks of one configuration have different names."""
    obj = configuration(MUTATING, "c", webhook("a"), webhook("a"))
    strategy = MUTATING_WEBHOOK_CONFIGURATION.strategy
    strategy.default(obj, CONTEXT)
    assert [str(cause) for cause in strategy.validate(obj, CONTEXT)] == [
        'webhooks[1].name: Duplicate value: "a.example.com"'
    ]


async def test_webhooks_are_merged_by_name(api: Api) -> None:
    """Server-side apply and strategic merge patches of two owners do not take each other's webhooks away."""
    for manager, name in (("one", "a"), ("two", "b")):
        body = configuration(MUTATING, "c", webhook(name))
        applied = await api.apply(f"{MUTATING}/c", body, f"fieldManager={manager}")
        assert applied.code in (200, 201), applied.body
    patch = {"webhooks": [{"name": "b.example.com", "clientConfig": {"caBundle": "eA=="}}]}
    patched = await api("PATCH", f"{MUTATING}/c", patch, "application/strategic-merge-patch+json")
    assert [entry["name"] for entry in patched.body["webhooks"]] == ["a.example.com", "b.example.com"]
    assert patched.body["webhooks"][1]["clientConfig"]["caBundle"] == "eA=="
    assert patched.body["metadata"]["generation"] == 3
