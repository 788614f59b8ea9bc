from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from devcluster.tests.apiserver.kinds.jobsets.builders import complaints, make_jobset, make_replicated_job

if TYPE_CHECKING:
    from trainer.kube.objects import Object

PLAIN = "<nil>: Internal error: "
LABEL = "a DNS-1035 label must consist of lower case alphanumeric characters"


def on(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "status": "Complete"} for name in names]


@pytest.mark.parametrize(
    ("jobset", "complaint"),
    [
        pytest.param(
            make_jobset(failurePolicy={"restartStrategy": "InPlaceRestart"}),
            f"{PLAIN}InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled",
            id="restart in place",
        ),
        pytest.param(
            make_jobset(make_replicated_job(dependsOn=on("node"))),
            f"{PLAIN}DependsOn can't be set for the first ReplicatedJob",
            id="first depends",
        ),
        pytest.param(
            make_jobset(make_replicated_job("a"), make_replicated_job("b", dependsOn=on("a", "c"))),
            f"{PLAIN}replicatedJob: b cannot depend on replicatedJob: c",
            id="depends on nothing",
        ),
        pytest.param(
            make_jobset(
                make_replicated_job("a"), make_replicated_job("b", dependsOn=on("c")), make_replicated_job("c")
            ),
            f"{PLAIN}replicatedJob: b cannot depend on replicatedJob: c",
            id="depends on a later one",
        ),
        pytest.param(
            make_jobset(make_replicated_job(replicas=2**30 + 1)),
            f"{PLAIN}the product of replicas and parallelism must not exceed 2147483647 for replicatedJob 'node'",
            id="too many pods",
        ),
        pytest.param(
            make_jobset(managedBy="me"),
            'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
            id="manager",
        ),
    ],
)
def test_wrong_jobsets_are_refused(jobset: Object, complaint: str) -> None:
    """In the words of the webhook."""
    assert complaints(jobset) == [complaint]


def test_a_replicated_job_may_depend_on_itself() -> None:
    """It will wait forever, and the webhook does not mind."""
    assert complaints(make_jobset(make_replicated_job("a"), make_replicated_job("b", dependsOn=on("b")))) == []


@pytest.mark.parametrize("subdomain", ["net", "a-b1"])
def test_good_subdomains(subdomain: str) -> None:
    """A subdomain is the name of a Service."""
    assert complaints(make_jobset(network={"subdomain": subdomain})) == []


@pytest.mark.parametrize(
    ("subdomain", "texts"),
    [
        pytest.param("a.b", [LABEL], id="two labels"),
        pytest.param("A", ["a lowercase RFC 1123 subdomain must consist", LABEL], id="upper case"),
        pytest.param(
            "a" * 64, [".spec.network.subdomain is too long, must be less than 63 characters"], id="64 characters"
        ),
    ],
)
def test_bad_subdomains(subdomain: str, texts: list[str]) -> None:
    """It has to fit the rules of both."""
    found = complaints(make_jobset(network={"subdomain": subdomain}))
    path = f'spec.network.subdomain: Invalid value: "{subdomain}": '
    assert [text.startswith(path + start) for text, start in zip(found, texts, strict=True)] == [True] * len(texts)


@pytest.mark.parametrize(
    ("group", "start"),
    [
        pytest.param("1", LABEL, id="number"),
        pytest.param("g" * 64, ".spec.replicatedJob[].groupName is too long", id="64 characters"),
    ],
)
def test_group_names_are_labels(group: str, start: str) -> None:
    """They are written on Jobs and pods."""
    [found] = complaints(make_jobset(make_replicated_job(groupName=group)))
    assert found.startswith(f'spec.replicatedJobs[0].groupName: Invalid value: "{group}": {start}')


@pytest.mark.parametrize(
    ("name", "replicas", "texts"),
    [
        pytest.param("Node", 1, [LABEL, LABEL], id="upper case"),
        pytest.param("n" * 46, 1, [], id="longest"),
        pytest.param("n" * 47, 1, ["JobSet name is too long, pod names generated"], id="pods"),
        pytest.param(
            "n" * 46, 11, ["JobSet name is too long, pod names generated"], id="pods of the last of many Jobs"
        ),
        pytest.param(
            "n" * 57,
            11,
            ["JobSet name is too long, job names generated", "JobSet name is too long, pod names generated"],
            id="Jobs",
        ),
    ],
)
def test_made_names_have_to_fit(name: str, replicas: int, texts: list[str]) -> None:
    """`<jobset>-<replicated job>-<index>-<pod index>-<five letters>` is a DNS label."""
    found = complaints(make_jobset(make_replicated_job(name, replicas=replicas), name="jobset"))
    path = f'spec.replicatedJobs[0].name: Invalid value: "jobset-{name}-{replicas - 1}": '
    assert [text.startswith(path + start) for text, start in zip(found, texts, strict=True)] == [True] * len(texts)


def test_names_are_made_from_those_that_the_server_will_make() -> None:
    """With generateName the webhook assumes five letters more."""
    jobset = make_jobset(make_replicated_job("n" * 45), name="")
    jobset["metadata"]["generateName"] = "js"
    assert complaints(jobset) == []
    jobset["metadata"]["generateName"] = "jso"
    assert len(complaints(jobset)) == 1
