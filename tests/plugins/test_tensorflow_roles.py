"""TensorFlow with a chief, parameter servers and evaluators: the variables of each role, and when the training ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.kube.objects import Object
from trainer.plugins.tensorflow import TensorFlow

ADDRESSES = {
    "chief": ["demo-chief-0-0.demo:29400"],
    "ps": ["demo-ps-0-0.demo:29400", "demo-ps-0-1.demo:29400"],
    "worker": ["demo-node-0-0.demo:29400", "demo-node-0-1.demo:29400"],
}
PRIMARY = {"trainer.kubeflow.org/trainer-status-primary-pod": "true"}


def role(name: str, container: Object | None = None, *, size: Object | None = None, replicas: int = 1) -> Object:
    """A replicated Job of a role, which says nothing about its command unless `container` does."""
    job = replicated_job(name, {"name": "trainer", "image": "runtime", "command": []} | (container or {}))
    job["template"]["spec"] |= size or {}
    return job | {"replicas": replicas}


NODE, CHIEF, EVALUATOR = role("Node", {"command": ["runtime.py"]}), role("chief"), role("evaluator")
SERVERS = role("PS", size={"parallelism": 2})


def enforced(*jobs: Object, spec: Any = None, nodes: int = 2, **jobset: Any) -> RuntimeInfo:
    """RuntimeInfo after the plugin."""
    job = train_job(**(spec or {}))
    info = extract(job, runtime(*jobs, policy={"numNodes": nodes, "tensorflow": {}}, jobset=jobset))
    TensorFlow().enforce_ml_policy(info, job)
    apply_trainer_env(info, job)
    return info


def configs(info: RuntimeInfo) -> dict[str, Any]:
    """`TF_CONFIG` of the pods with index 1 of each replicated Job that has one."""
    found = {pod_set.name: env_of({"env": pod_set.main_container.env}) for pod_set in info.training_pod_sets}
    return {name: json.loads(env["TF_CONFIG"].replace("$(TF_TASK_INDEX)", "1")) for name, env in found.items()}


@pytest.mark.parametrize(
    ("jobs", "cluster"),
    [
        pytest.param([NODE, CHIEF, SERVERS], ["chief", "ps", "worker"], id="parameter-servers"),
        pytest.param([CHIEF, NODE], ["chief", "worker"], id="chief"),
        pytest.param([NODE, CHIEF, SERVERS, EVALUATOR], ["chief", "ps", "worker"], id="evaluator-is-no-member"),
    ],
)
def test_roles(jobs: list[Object], cluster: list[str]) -> None:
    """Each role knows the addresses of all members of the cluster, what it is, and its index."""
    found = configs(enforced(*jobs))
    assert set(found) == {job["name"].lower() for job in jobs}
    for name, config in found.items():
        assert config == {
            "cluster": {member: ADDRESSES[member] for member in cluster},
            "task": {"type": "worker" if name == "node" else name, "index": 1},
            "environment": "cloud",
        }


def test_one_worker_with_servers() -> None:
    """A single node is a cluster as soon as another role is there."""
    assert configs(enforced(NODE, SERVERS, nodes=1))["ps"]["cluster"]["worker"] == ADDRESSES["worker"][:1]


def test_what_roles_get_of_the_train_job() -> None:
    """Image and variables are for all; command, processors and memory for roles without; devices for the nodes."""
    trainer = {
        "image": "mine",
        "command": ["train.py"],
        "args": ["--fast"],
        "env": [{"name": "A", "value": "$(TF_TASK_INDEX)"}],
        "resourcesPerNode": {"requests": {"cpu": 4}, "limits": {"nvidia.com/gpu": 1}},
    }
    gpu = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    own = role("ps", {"args": ["serve.py"], "resources": {"requests": {"cpu": 1}}})
    info = enforced(NODE, CHIEF, own, role("evaluator", gpu), spec={"trainer": trainer})
    containers = {pod_set.name: pod_set.main_container for pod_set in info.training_pod_sets}
    assert {container.image for container in containers.values()} == {"mine"}
    assert all(container.env[-1] == trainer["env"][0] for container in containers.values())  # type: ignore[index]
    assert (containers["chief"].command, containers["chief"].args) == (["train.py"], ["--fast"])
    assert (containers["ps"].command, containers["ps"].args) == ([], ["serve.py"])
    assert {name: container.resources for name, container in containers.items()} == {
        "node": {"requests": {"cpu": 4}, "limits": {"nvidia.com/gpu": 1}},
        "chief": {"requests": {"cpu": 4}},
        "ps": {"requests": {"cpu": 1}},
        "evaluator": {"requests": {"cpu": 4}, "limits": {"nvidia.com/gpu": 2}},
    }


def test_command_of_the_runtime() -> None:
    """Roles run the command of the runtime's nodes when the TrainJob has none."""
    info = enforced(NODE, CHIEF)
    assert [peer.main_container.command for peer in info.peers] == [["runtime.py"]]


@pytest.mark.parametrize(
    ("jobs", "policy", "targets"),
    [
        pytest.param([NODE], {}, None, id="workers-alone"),
        pytest.param([NODE, CHIEF, SERVERS], {}, ["chief"], id="chief-ends-it"),
        pytest.param([NODE, SERVERS, EVALUATOR], {}, ["node"], id="workers-end-it"),
        pytest.param([role("loader"), NODE, CHIEF], {}, ["loader", "chief"], id="other-Jobs-count"),
        pytest.param(
            [NODE, CHIEF, SERVERS],
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]}},
            ["node"],
            id="policy-of-the-runtime",
        ),
    ],
)
def test_end(jobs: list[Object], policy: Any, targets: list[str] | None) -> None:
    """The training ends with its chief, else with its workers; servers and evaluators never end by themselves."""
    found = enforced(*jobs, **policy).template.success_policy
    assert (found and found.target_replicated_jobs) == targets


def test_chief_reports() -> None:
    """The chief has the primary pod, whose log has the progress; all are members of the gang."""
    info = enforced(NODE, CHIEF, SERVERS)
    annotations = {pod_set.name: pod_set.annotations for pod_set in info.pod_sets}
    assert annotations == {"node": {}, "chief": PRIMARY, "ps": {}}
    assert [pod_set.name for pod_set in info.gang] == ["node", "chief", "ps"]
    assert enforced(NODE, SERVERS).peers[0].annotations == {}


JOBS = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs"


@pytest.mark.parametrize(
    ("job", "error"),
    [
        pytest.param(
            role("chief", size={"parallelism": 2}),
            f"{JOBS}[chief].template.spec.parallelism: Invalid value: 2: must be 1: a training has one chief",
            id="two-chiefs",
        ),
        pytest.param(
            role("ps", size={"parallelism": 2, "completions": 4}),
            f"{JOBS}[ps].template.spec.completions: Invalid value: 4: must be left out or 2, the parallelism",
            id="servers-in-turn",
        ),
        pytest.param(
            role("ps", size={"parallelism": 2_000_000_000}),
            f"{JOBS}[ps].template.spec.parallelism: Invalid value: 2000000000: must be at most 4717",
            id="too-many-servers",
        ),
    ],
)
def test_sizes(job: Object, error: str) -> None:
    """Several chiefs, servers that do not run at the same time, and more than TF_CONFIG can name are refused."""
    train = train_job()
    info = extract(train, runtime(NODE, job, policy={"numNodes": 2, "tensorflow": {}}))
    (found,) = TensorFlow().validate(info, None, train)
    assert str(found).startswith(error)


@pytest.mark.parametrize(
    ("job", "error"),
    [
        pytest.param(
            role("ps", replicas=2),
            f"{JOBS}[ps].replicas: Invalid value: 2: must be 1 for ps; set parallelism of the Job instead",
            id="several-Jobs",
        ),
        pytest.param(
            role("ps", size={"completionMode": "NonIndexed"}),
            f'{JOBS}[ps].template.spec.completionMode: Invalid value: "NonIndexed": must be Indexed',
            id="no-index",
        ),
    ],
)
def test_jobs_without_an_index(job: Object, error: str) -> None:
    """A task needs an index among those of its role."""
    with pytest.raises(BuildError) as raised:
        enforced(NODE, job)
    assert str(raised.value).startswith(error)


def test_reserved_variables() -> None:
    """A TrainJob must not override the variables of a role."""
    override = {
        "targetJobs": [{"name": "ps"}],
        "containers": [{"name": "trainer", "env": [{"name": "TF_CONFIG", "value": "{}"}]}],
    }
    train = train_job(podSpecOverrides=[override])
    info = extract(train, runtime(NODE, SERVERS, policy={"numNodes": 2, "tensorflow": {}}))
    (error,) = TensorFlow().validate(info, None, train)
    assert str(error).startswith("spec.podSpecOverrides[0].containers[0].env: Forbidden: must not set TF_CONFIG")
