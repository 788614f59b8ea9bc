"""Custom resource definitions: derived names, and the texts with which wrong ones are refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from packages.devcluster.tests.apiserver.kinds.context import created, updated
from trainer.kube.objects import Object
from trainer_devcluster.apiserver.kinds.custom_resource_definition import CustomResourceDefinitionStrategy

STRATEGY = CustomResourceDefinitionStrategy()
SPEC = {"type": "object", "properties": {"a": {"type": "string"}, "o": {"type": "object"}}}
SCHEMA = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}}
OTHER_SCHEMA = {"openAPIV3Schema": {"type": "object"}}
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
NO_STORED = "status.storedVersions: Invalid value: []: must have at least one stored version"


def version(name: str = "v1", **fields: Any) -> Object:
    return {"name": name, "served": True, "storage": name == "v1", "schema": SCHEMA, **fields}


def make_crd(**spec: Any) -> Object:
    names = {"plural": "widgets", "kind": "Widget"}
    defaults = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version()]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": {**defaults, **spec}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"group": "other.com"},
            ['metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group'],
            id="name",
        ),
        pytest.param(
            {"scope": "Global"},
            ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
            id="scope",
        ),
        pytest.param(
            {"versions": []},
            ["spec.versions: Invalid value: []: must have exactly one version marked as storage version", NO_STORED],
            id="no version",
        ),
        pytest.param(
            {"versions": [{"name": "v1", "storage": True}]},
            ["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
            id="no schema",
        ),
        pytest.param(
            {"versions": [version(), version("V2")]},
            [f'spec.versions[1].name: Invalid value: "V2": {LABEL}'],
            id="name of a version",
        ),
        pytest.param(
            {"versions": [version(), version("v2", schema={"openAPIV3Schema": {"type": "string"}})]},
            ['spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root'],
            id="what is different is named in its version",
        ),
        pytest.param(
            {"versions": [version(subresources={"scale": {"specReplicasPath": ".x", "statusReplicasPath": "y"}})]},
            [
                'spec.subresources.scale.specReplicasPath: Invalid value: ".x": should be a json path under .spec',
                (
                    'spec.subresources.scale.statusReplicasPath: Invalid value: "y": must be a simple json path '
                    "starting "
                    "with ."
                ),
            ],
            id="scale",
        ),
        pytest.param(
            {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": "a"}])]},
            [
                (
                    'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of '
                    "boolean,date,integer,number,string"
                ),
                (
                    'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path '
                    "starting "
                    "with ."
                ),
            ],
            id="column",
        ),
        pytest.param(
            {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".a[0,1]"}])]},
            [
                (
                    "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \".a[0,1]\": '.a[0,1]': the dev cluster "
                    "cannot read '[0,1]'"
                )
            ],
            id="path that is not supported",
        ),
        pytest.param(
            {"versions": [version(selectableFields=[{"jsonPath": ".spec.b"}, {"jsonPath": ".spec.o"}])]},
            [
                (
                    'spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec.b": is an invalid path: '
                    "does not "
                    "refer to a valid field"
                ),
                (
                    'spec.versions[0].selectableFields[1].jsonPath: Invalid value: ".spec.o": must point to a field '
                    "of type "
                    "string, boolean or integer. Enum string fields and strings with formats are allowed."
                ),
            ],
            id="selectable fields",
        ),
        pytest.param(
            {"conversion": {"strategy": "Magic"}},
            ['spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"'],
            id="conversion",
        ),
        pytest.param(
            {"conversion": {"strategy": "Webhook"}},
            [
                (
                    "spec.conversion.strategy: Forbidden: the dev cluster calls no conversion webhooks: use None, or a "
                    "real cluster"
                )
            ],
            id="conversion webhook",
        ),
        pytest.param(
            {"names": {"plural": "widgets", "kind": "Widget", "listKind": "Widget", "shortNames": ["W"]}},
            [
                f'spec.names.shortNames[0]: Invalid value: "W": {LABEL}',
                'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
            ],
            id="names",
        ),
        pytest.param(
            {"preserveUnknownFields": True},
            [
                (
                    "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
                    "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                )
            ],
            id="everything is kept",
        ),
    ],
)
def test_wrong_definitions_are_refused(spec: dict[str, Any], expected: list[str]) -> None:
    """The texts are those of the real server."""
    assert list(map(str, created(STRATEGY, make_crd(**spec))[1])) == expected


def established(crd: Object) -> Object:
    crd["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    return crd


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"versions": [version(), version("v2", schema=OTHER_SCHEMA)]}, [], id="another version"),
        pytest.param(
            {"versions": [version("v2", storage=True)]},
            [
                (
                    'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a '
                    "storage "
                    "version, and must remain in spec.versions until a storage migration ensures no data remains "
                    "persisted "
                    "in v1 and removes v1 from status.storedVersions"
                )
            ],
            id="a version that is stored goes",
        ),
    ],
)
def test_changes_of_established_definitions(change: dict[str, Any], expected: list[str]) -> None:
    """Stored objects keep their place, and can be read for as long as they are there."""
    old = established(created(STRATEGY, make_crd())[0])
    new = deepcopy(old)
    new["spec"].update(change)
    assert list(map(str, updated(STRATEGY, new, old))) == expected
