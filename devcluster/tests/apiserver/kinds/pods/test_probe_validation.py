from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer_devcluster.apiserver.kinds.pods.probe_validation import validate_probe

if TYPE_CHECKING:
    from trainer.kube.objects import Object


@pytest.mark.parametrize(
    "probe",
    [
        {"exec": {"command": ["true"]}},
        {"tcpSocket": {"port": 22}},
        {"tcpSocket": {"port": "ssh"}},
        {"httpGet": {"port": 80, "path": "/", "scheme": "HTTPS"}, "initialDelaySeconds": 0},
        {"grpc": {"port": 80}},
    ],
)
def test_good_probes(probe: Object) -> None:
    """One action and numbers that are not negative."""
    assert validate_probe(probe, "p") == []


@pytest.mark.parametrize(
    ("probe", "complaint"),
    [
        pytest.param({"periodSeconds": 1}, "p: Required value: must specify a handler type", id="no action"),
        pytest.param(
            {"exec": {"command": ["true"]}, "tcpSocket": {"port": 1}},
            "p.tcpSocket: Forbidden: may not specify more than 1 handler type",
            id="two actions",
        ),
        pytest.param({"exec": {}}, "p.exec.command: Required value", id="no command"),
        pytest.param(
            {"tcpSocket": {"port": 65536}},
            "p.tcpSocket.port: Invalid value: 65536: must be between 1 and 65535, inclusive",
            id="port",
        ),
        pytest.param(
            {"tcpSocket": {}},
            "p.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive",
            id="no port",
        ),
        pytest.param(
            {"httpGet": {"port": 1, "scheme": "FTP"}},
            'p.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"',
            id="scheme",
        ),
        pytest.param(
            {"tcpSocket": {"port": 1}, "periodSeconds": -1},
            "p.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
            id="number",
        ),
    ],
)
def test_bad_probes(probe: Object, complaint: str) -> None:
    """In the words of Kubernetes."""
    assert [str(cause) for cause in validate_probe(probe, "p")] == [complaint]
