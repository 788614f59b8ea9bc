"""Elastic torch: how torchrun learns of nodes that come and go, and what happens to the Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, runtime, train_job
from trainer.framework.building.extraction import extract
from trainer.framework.building.trainer_step import apply_trainer_env
from trainer.framework.plugin_api.errors import AdmissionWarning
from trainer.framework.plugin_api.runtime_info import NodeRange, RuntimeInfo
from trainer.plugins.torch.elastic import RENDEZVOUS_CONFIGURATION
from trainer.plugins.torch.plugin import Torch

POLICY = {"minNodes": 2, "maxNodes": 5, "maxRestarts": 3}


def enforced(
    spec: Any = None,
    *,
    policy: Any = None,
    uid: str | None = "the-uid",
    job: Any = None,
    env: Any = (),
    domain: str = "",
    **more: Any,
) -> RuntimeInfo:
    """RuntimeInfo after the plugin and the variables of the TrainJob."""
    wanted = train_job(**(spec or {}))
    wanted.metadata.uid = uid
    container = {"name": "trainer", "env": list(env)}
    elastic = {"torch": {"elasticPolicy": POLICY if policy is None else policy}}
    info = extract(wanted, runtime(replicated_job("Node", container, job=job), policy=elastic, jobset=more))
    info.pod_domain = domain
    Torch().enforce_ml_policy(info, wanted)
    apply_trainer_env(info, wanted)
    return info


def env(info: RuntimeInfo) -> dict[str, Any]:
    return env_of({"env": info.main_container.env})


def test_variables() -> None:
    """The nodes meet at the first one; no node has a rank of its own, and none is alone."""
    info = enforced()
    assert env(info) == {
        "PET_NNODES": "2:5",
        "PET_NPROC_PER_NODE": "1",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ID": "the-uid",
        "PET_RDZV_ENDPOINT": "demo-node-0-0.demo:29400",
        "PET_RDZV_CONF": RENDEZVOUS_CONFIGURATION,
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PET_MAX_RESTARTS": "3",
    }
    assert info.main_container.ports == [{"containerPort": 29400, "protocol": "TCP"}]


def test_without_a_word_about_restarts() -> None:
    """What the policy does not say is left to torchrun and JobSet."""
    info = enforced(policy={"maxNodes": 2})
    assert "PET_MAX_RESTARTS" not in env(info)
    assert info.template.failure_policy is None


def test_every_node_keeps_a_store() -> None:
    """The first node keeps its store even if DNS does not know yet that it is the first."""
    assert "is_host=true" in env(enforced())["PET_RDZV_CONF"].split(",")


def test_id_of_a_job_that_is_not_stored() -> None:
    """Without a cluster there is no uid; the name stands in for it."""
    assert env(enforced(uid=None))["PET_RDZV_ID"] == "demo"


@pytest.mark.parametrize("name", ["PET_RDZV_CONF", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"])
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"env": [{"name": "", "value": "mine"}]}, id="runtime"),
        pytest.param({"spec": {"trainer": {"env": [{"name": "", "value": "mine"}]}}}, id="TrainJob"),
    ],
)
def test_advice_may_be_overridden(name: str, arguments: Any) -> None:
    """Timeouts of the rendezvous, and the work-around for its store, are for people to change."""
    variables = arguments.get("env") or arguments["spec"]["trainer"]["env"]
    named = [variable | {"name": name} for variable in variables]
    mine = {"env": named} if "env" in arguments else {"spec": {"trainer": {"env": named}}}
    assert env(enforced(**mine))[name] == "mine"


@pytest.mark.parametrize(
    ("endpoint", "is_host"),
    [
        pytest.param("etcd:2379", False, id="elsewhere"),
        pytest.param("$(TRAINJOB_NAME)-node-0-0.$(TRAINJOB_NAME):1234", True, id="another-port"),
        pytest.param("$(TRAINJOB_NAME)-node-0-0.$(TRAINJOB_NAME)", True, id="no-port"),
    ],
)
@pytest.mark.parametrize("domain", ["", ".default.svc.cluster.local"], ids=["short-names", "full-names"])
def test_another_meeting_point(endpoint: str, is_host: bool, domain: str) -> None:
    """A runtime may have the nodes meet elsewhere; only where it is the first node every node keeps a store."""
    own = {"PET_RDZV_BACKEND": "etcd-v2", "PET_RDZV_ID": "mine", "PET_RDZV_ENDPOINT": endpoint}
    found = env(enforced(env=[{"name": name, "value": value} for name, value in own.items()], domain=domain))
    assert own.items() <= found.items()
    assert ("is_host=true" in found["PET_RDZV_CONF"].split(",")) == is_host
    assert "join_timeout=1800" in found["PET_RDZV_CONF"].split(",")


@pytest.mark.parametrize(
    ("policy", "nodes", "expected"),
    [
        pytest.param({"minNodes": 2, "maxNodes": 5}, None, (2, 5), id="both"),
        pytest.param({}, 3, (3, 3), id="size-only"),
        pytest.param({}, None, (1, 1), id="nothing"),
    ],
)
def test_bounds(policy: Any, nodes: int | None, expected: tuple[int, int]) -> None:
    """Each bound defaults to the other, and both to the number of nodes that the TrainJob asks for."""
    spec: Any = {} if nodes is None else {"trainer": {"numNodes": nodes}}
    assert enforced(spec, policy=policy).trainer.elastic == expected


@pytest.mark.parametrize(("spec", "count"), [({}, 4), ({"trainer": {"numNodes": 3}}, 3)], ids=["template", "stated"])
def test_size_without_bounds(spec: Any, count: int) -> None:
    """A policy without bounds trains on as many nodes as the template of the runtime has, unless the TrainJob says."""
    info = enforced(spec, policy={}, job={"parallelism": 4})
    assert (info.trainer.count, info.trainer.elastic) == (count, NodeRange(count, count))
    assert env(info)["PET_NNODES"] == f"{count}:{count}"


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({}, 2, id="the-fewest"),
        pytest.param({"trainer": {"numNodes": 4}}, 4, id="as-the-TrainJob-says"),
    ],
)
def test_size(spec: Any, count: int) -> None:
    """It starts with as many nodes as the TrainJob asks for, or the fewest, and other plugins learn the bounds."""
    nodes = enforced(spec).trainer
    assert (nodes.count, nodes.elastic) == (count, NodeRange(2, 5))


@pytest.mark.parametrize(
    ("jobset", "expected"),
    [
        pytest.param({}, {"maxRestarts": 3}, id="none-before"),
        pytest.param(
            {"failurePolicy": {"restartStrategy": "BlockingRecreate", "rules": [{"action": "FailJobSet"}]}},
            {"maxRestarts": 3, "restartStrategy": "BlockingRecreate", "rules": [{"action": "FailJobSet"}]},
            id="the-rest-stays",
        ),
        pytest.param({"failurePolicy": {"maxRestarts": 3}}, {"maxRestarts": 3}, id="the-same"),
    ],
)
def test_failure_policy(jobset: Any, expected: Any) -> None:
    """JobSet starts everything again as often as torchrun its workers."""
    policy = enforced(**jobset).template.failure_policy
    assert policy is not None
    assert policy.to_object() == expected


def test_the_number_of_restarts_of_the_train_job() -> None:
    """It takes the place of that of the policy everywhere, and nothing is said of the policy then."""
    info = enforced({"maxRestarts": 7})
    policy = info.template.failure_policy
    assert policy is not None
    assert (policy.max_restarts, env(info)["PET_MAX_RESTARTS"]) == (7, "7")
    assert findings({"maxRestarts": 7}, POLICY, failurePolicy={"maxRestarts": 3}) == []
    assert findings({"maxRestarts": 7}, {"maxNodes": 2}) == []


@pytest.mark.parametrize(
    ("job", "rules"),
    [
        pytest.param({}, [{"succeededCount": 1}], id="any-node"),
        pytest.param({"successPolicy": {"rules": [{"succeededCount": 2}]}}, [{"succeededCount": 2}], id="own"),
    ],
)
def test_success_policy(job: Any, rules: Any) -> None:
    """The success of the first node is that of the training, unless the runtime knows better."""
    info = enforced(job=job)
    assert info.job_of(info.trainer).template.spec.success_policy == {"rules": rules}


def findings(spec: Any, policy: Any, **jobset: Any) -> list[Any]:
    job = train_job(**spec)
    info = extract(job, runtime(policy={"torch": {"elasticPolicy": policy}}, jobset=jobset))
    return list(Torch().validate(info, None, job))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        pytest.param(2, None, id="least"),
        pytest.param(5, None, id="most"),
        pytest.param(6, "spec.trainer.numNodes: Invalid value: 6: must be between 2 and 5: ", id="too-many"),
    ],
)
def test_size_out_of_bounds(nodes: int, message: str | None) -> None:
    """A number of nodes that the policy does not allow is refused."""
    field = "ClusterTrainingRuntime/blueprint spec.mlPolicy.torch.elasticPolicy"
    found = [str(error) for error in findings({"trainer": {"numNodes": nodes}}, POLICY)]
    assert found == ([] if message is None else [message + field])


def test_two_words_about_restarts() -> None:
    """A runtime that says two numbers of restarts is refused, and one that says none is warned of."""
    (refused,) = findings({}, POLICY, failurePolicy={"maxRestarts": 4})
    (warning,) = findings({}, {"maxNodes": 2})
    assert str(refused) == (
        "ClusterTrainingRuntime/blueprint spec.template.spec.failurePolicy.maxRestarts: Invalid value: 4: "
        "must be left out or 3, as spec.mlPolicy.torch.elasticPolicy.maxRestarts says"
    )
    assert isinstance(warning, AdmissionWarning)
    assert warning.field == "ClusterTrainingRuntime/blueprint spec.mlPolicy.torch.elasticPolicy.maxRestarts"
