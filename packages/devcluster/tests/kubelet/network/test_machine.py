"""Names in environment variables without namespaces."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.network.machine import PlainNetwork


@pytest.mark.parametrize(
    ("value", "rewritten"),
    [
        pytest.param("job-node-0-0.job", "127.0.0.1", id="pod"),
        pytest.param("tcp://job-node-0-0.job:29400/x", "tcp://127.0.0.1:29400/x", id="in a URL"),
        pytest.param("job-node-0-0.job.team.svc.cluster.local:1", "127.0.0.1:1", id="qualified"),
        pytest.param("a-0.job,a-1.job", "127.0.0.1,127.0.0.1", id="list"),
        pytest.param("job.team.svc", "127.0.0.1", id="service"),
        pytest.param("job", "job", id="a word"),
        pytest.param("a.job.other", "a.job.other", id="other domain"),
        pytest.param("a.jobs", "a.jobs", id="longer name"),
        pytest.param("/data/x.jobfile", "/data/x.jobfile", id="path"),
    ],
)
def test_rewrite(value: str, rewritten: str) -> None:
    """Names of pods in the subdomain become the one address, and nothing else changes."""
    assert PlainNetwork().rewrite(value, namespace="team", subdomain="job") == rewritten


def test_no_subdomain() -> None:
    """A pod without subdomain has no names to replace."""
    assert PlainNetwork().rewrite("a.b", namespace="team", subdomain="") == "a.b"
