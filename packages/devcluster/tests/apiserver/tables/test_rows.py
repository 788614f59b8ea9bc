"""Rows of built-in kinds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from trainer_devcluster.apiserver.tables.rows import PRINTED_KINDS

NOW = datetime(2026, 1, 1, 0, 1, 0, tzinfo=UTC)
CREATED = "2026-01-01T00:00:00Z"


def named(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n", "creationTimestamp": CREATED, **fields.pop("metadata", {})}, **fields}


@pytest.mark.parametrize(
    ("kind", "obj", "row"),
    [
        pytest.param(
            "v1/Node",
            named(
                metadata={"labels": {"node-role.kubernetes.io/control-plane": ""}},
                spec={"unschedulable": True},
                status={
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1"},
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                },
            ),
            {
                "Status": "Ready,SchedulingDisabled", "Roles": "control-plane", "Version": "v1",
                "Internal-IP": "10.0.0.1", "External-IP": "<none>", "OS-Image": "<unknown>",
            },
            id="node",
        ),
        pytest.param("v1/Secret", named(type="Opaque", data={"a": "MQ=="}), {"Type": "Opaque", "Data": 1}, id="secret"),
        pytest.param(
            "v1/Event",
            named(
                involvedObject={"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
                source={"component": "kubelet", "host": "laptop"},
                type="Warning",
                reason="BackOff",
                message="text\n",
                count=3,
                firstTimestamp="2025-12-31T23:59:00Z",
                lastTimestamp=CREATED,
            ),
            {
                "Last Seen": "60s", "Type": "Warning", "Reason": "BackOff", "Object": "pod/p",
                "Subobject": "spec.containers{c}", "Source": "kubelet, laptop", "Message": "text", "First Seen": "2m",
                "Count": 3, "Name": "n",
            },
            id="event",
        ),
        pytest.param(
            "v1/PersistentVolumeClaim",
            named(
                spec={"volumeName": "v", "storageClassName": "local", "volumeMode": "Filesystem"},
                status={"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
            ),
            {
                "Status": "Bound", "Volume": "v", "Capacity": "1Gi", "Access Modes": "RWO", "StorageClass": "local",
                "VolumeMode": "Filesystem",
            },
            id="claim",
        ),
        pytest.param(
            "coordination.k8s.io/v1/Lease", named(spec={"holderIdentity": "me"}), {"Holder": "me"}, id="lease"
        ),
    ],
)  # fmt: skip
def test_rows(kind: str, obj: dict[str, Any], row: dict[str, Any]) -> None:
    """Cells are those of the server-side printers."""
    columns, cells = PRINTED_KINDS[kind]
    shown = dict(zip([column.name for column in columns], cells(obj, NOW), strict=True))
    assert {name: shown[name] for name in row} == row


@pytest.mark.parametrize("kind", PRINTED_KINDS)
def test_every_column_is_documented_and_every_row_complete(kind: str) -> None:
    """Columns have descriptions, and an object with nothing but a name can be shown."""
    columns, cells = PRINTED_KINDS[kind]
    assert all(column.to_object()["description"] for column in columns)
    assert len(cells({"metadata": {"name": "n"}}, NOW)) == len(columns)
