"""Workload: what the pods that train, their PodGroup and their Workload say."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, runtime_object, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.labels import ANCESTOR_LABEL
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import unique_name
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, BuildError
from trainer.framework.runtimes.default_gang import DefaultGang
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.plugins.jax.plugin import Jax
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.mpi.plugin import MPI
from trainer.plugins.plainml import PlainML
from trainer.plugins.tensorflow import TensorFlow
from trainer.plugins.torch.plugin import Torch
from trainer.plugins.workload.plugin import Workload
from trainer.plugins.workload.versions import CLAIMS, DISRUPTION, TOPOLOGY, V1ALPHA2, V1BETA1, WorkloadVersion
from trainer.v1alpha1.profile import V1ALPHA1_PROFILE
from trainer.workloads import JOBSETS

GROUP = unique_name(train_job(), "trainer")
POLICY = "ClusterTrainingRuntime/blueprint spec.podGroupPolicy.workload"
NODE = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"


def cluster(version: WorkloadVersion | None = V1BETA1, *refused: str) -> StaticReader:
    """A cluster that serves one version of the Workload API and refuses these dry runs of it."""
    others = [each for each in (V1BETA1, V1ALPHA2) if each is not version]
    reader = StaticReader(unserved=[kind for each in others for kind in (each.pod_groups, each.workloads)])
    if version is not None:
        reader.refusals = {(version.pod_groups, dry_run): "422" for dry_run in refused}
    return reader


def pipeline(reader: StaticReader | None = None) -> Pipeline:
    """The plugin with those that it needs to become a JobSet."""
    reader = reader or cluster()
    return Pipeline(Registry([PlainML(), MPI(reader), Jax(), Torch(), Workload(reader), JobSetPlugin(reader)]))


def blueprint(
    *jobs: Object, workload: Object | None = None, policy: Object | None = None, **jobset: Any
) -> ClusterTrainingRuntime:
    """A runtime of gangs of Kubernetes itself."""
    found = policy or {"numNodes": 2, "torch": {}}
    return runtime(*jobs, policy=found, jobset=jobset, podGroupPolicy={"workload": workload or {}})


def built(
    *jobs: Object, reader: StaticReader | None = None, spec: Object | None = None, **more: Any
) -> dict[str, Object]:
    """Objects by kind."""
    components = pipeline(reader).build(train_job(**(spec or {})), blueprint(*jobs, **more))
    return {component.object["kind"]: component.object for component in components}


def groups_of(jobset: Object) -> dict[str, str | None]:
    """The PodGroup of the pods of each replicated Job."""
    specs = {job["name"]: job["template"]["spec"]["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]}
    return {name: spec.get("schedulingGroup", {}).get("podGroupName") for name, spec in specs.items()}


REFERENCES: dict[WorkloadVersion, Object] = {
    V1BETA1: {"workloadRef": {"workloadName": "demo", "templateName": "trainer"}},
    V1ALPHA2: {"podGroupTemplateRef": {"workload": {"workloadName": "demo", "podGroupTemplateName": "trainer"}}},
}
TOGETHER: dict[WorkloadVersion, Object | str] = {V1BETA1: {"all": {}}, V1ALPHA2: "PodGroup"}

MPIRUN: Object = {"trainer": {"command": ["mpirun"]}}


def build_errors(*jobs: Object, **more: Any) -> list[str]:
    """Why nothing is built in v1alpha1, where admission only warns, of Jobs whose containers are called node."""
    container, metadata = {"name": "node", "image": "i"}, {"labels": {ANCESTOR_LABEL: "trainer"}}
    labelled = []
    for job in jobs:
        pod = job["template"]["spec"]["template"]["spec"] | {"containers": [container]}
        labelled.append(job | {"template": {"metadata": metadata, "spec": {"template": {"spec": pod}}}})
    v1alpha1 = Pipeline(pipeline().plugins, profile=V1ALPHA1_PROFILE)
    with pytest.raises(BuildError) as found:
        v1alpha1.build(train_job(**MPIRUN), blueprint(*labelled, **more))
    return [str(each) for each in found.value.errors]


each_version = pytest.mark.parametrize("version", [pytest.param(each, id=each.name) for each in (V1BETA1, V1ALPHA2)])


@each_version
def test_objects(version: WorkloadVersion) -> None:
    """A PodGroup that no other TrainJob has, a Workload that names the TrainJob, and pods that are members."""
    objects = built(reader=cluster(version), policy={"numNodes": 3, "torch": {}})
    gang = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    assert objects["PodGroup"] == {
        "apiVersion": f"scheduling.k8s.io/{version.name}",
        "kind": "PodGroup",
        "metadata": {"name": GROUP, "namespace": "default"},
        "spec": gang | REFERENCES[version],
    }
    assert objects["Workload"] == {
        "apiVersion": f"scheduling.k8s.io/{version.name}",
        "kind": "Workload",
        "metadata": {"name": "demo", "namespace": "default"},
        "spec": {
            "controllerRef": {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": "demo"},
            "podGroupTemplates": [{"name": "trainer"} | gang],
        },
    }
    assert groups_of(objects["JobSet"]) == {"node": GROUP}


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        pytest.param({"policy": {"numNodes": 4, "jax": {}}}, 4, id="jax"),
        pytest.param({"policy": {"numNodes": 2}, "spec": {"trainer": {"numNodes": 5}}}, 5, id="TrainJob-wins"),
        pytest.param(
            {
                "policy": {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 5}}},
                "spec": {"trainer": {"numNodes": 4}},
            },
            2,
            id="elastic-least",
        ),
    ],
)
def test_size(arguments: dict[str, Any], size: int) -> None:
    """The gang is as large as the training needs at least."""
    assert built(**arguments)["PodGroup"]["spec"]["schedulingPolicy"] == {"gang": {"minCount": size}}


@pytest.mark.parametrize(
    ("mpi", "nodes", "size", "members"),
    [
        pytest.param({}, 3, 3, {"node"}, id="launcher-besides"),
        pytest.param({"runLauncherAsNode": True}, 3, 3, {"node", "launcher"}, id="launcher-is-a-node"),
        pytest.param({"runLauncherAsNode": True}, 1, 1, {"node", "launcher"}, id="launcher-is-the-only-node"),
    ],
)
def test_mpi(mpi: Object, nodes: int, size: int, members: set[str]) -> None:
    """A launcher that trains is a member; one that waits for the nodes is none."""
    jobs = replicated_job("launcher"), replicated_job("node")
    objects = built(*jobs, policy={"numNodes": nodes, "mpi": mpi}, spec=MPIRUN)
    assert objects["PodGroup"]["spec"]["schedulingPolicy"]["gang"]["minCount"] == size
    assert {name for name, group in groups_of(objects["JobSet"]).items() if group} == members


def test_steps_that_do_not_train() -> None:
    """What runs before or after the nodes is in no group."""
    initializer = replicated_job("initializer", {"name": "other", "image": "i"})
    exporter = replicated_job("exporter", {"name": "other", "image": "i"})
    jobset = built(initializer, replicated_job("node"), exporter)["JobSet"]
    assert groups_of(jobset) == {"initializer": None, "node": GROUP, "exporter": None}


def claims(*names: str, template: str = "channel") -> Object:
    """Claims of pods."""
    return {"resourceClaims": [{"name": name, "resourceClaimTemplateName": f"{name}-{template}"} for name in names]}


@each_version
def test_settings(version: WorkloadVersion) -> None:
    """PodGroup and template have what the runtime asks for, and the pods' own priority and claims."""
    node = replicated_job("node", pod={"priorityClassName": "high"} | claims("gpu", "imex"))
    policy = {"topologyKey": "example.com/rack", "disruptionMode": "PodGroup", "resourceClaims": ["imex"]}
    objects = built(node, workload=policy, reader=cluster(version))
    expected = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]},
        "disruptionMode": TOGETHER[version],
        "priorityClassName": "high",
        "resourceClaims": [{"name": "imex", "resourceClaimTemplateName": "imex-channel"}],
    }
    assert objects["PodGroup"]["spec"] == expected | REFERENCES[version]
    assert objects["Workload"]["spec"]["podGroupTemplates"] == [{"name": "trainer"} | expected]


@pytest.mark.parametrize(
    ("refused", "lacking"),
    [
        pytest.param(DISRUPTION, "priorityClassName", id="priority"),
        pytest.param(CLAIMS, "resourceClaims", id="claims"),
    ],
)
def test_what_pods_have_by_themselves(refused: str, lacking: str) -> None:
    """Where the API server refuses it for the group, each pod still has its own."""
    pod = {"priorityClassName": "high"} | claims("imex")
    node = replicated_job("node", pod=pod)
    objects = built(node, workload={"resourceClaims": ["imex"]}, reader=cluster(V1ALPHA2, refused))
    (job,) = objects["JobSet"]["spec"]["replicatedJobs"]
    assert {"priorityClassName", "resourceClaims"} - objects["PodGroup"]["spec"].keys() == {lacking}
    assert {name: job["template"]["spec"]["template"]["spec"][name] for name in pod} == pod


GATE = "the API server refuses it; switch on the feature gate {} of kube-apiserver and kube-scheduler"


@pytest.mark.parametrize(
    ("workload", "refused", "field", "gate"),
    [
        pytest.param({"topologyKey": "a/b"}, TOPOLOGY, "topologyKey", "TopologyAwareWorkloadScheduling", id="topology"),
        pytest.param(
            {"disruptionMode": "PodGroup"}, DISRUPTION, "disruptionMode", "WorkloadAwarePreemption", id="disruption"
        ),
    ],
)
def test_what_the_gates_of_the_cluster_refuse(workload: Object, refused: str, field: str, gate: str) -> None:
    """What a gate keeps a runtime from is refused with the name of the gate, and nothing else is."""
    reader = cluster(V1ALPHA2, refused)
    (error,) = pipeline(reader).review(train_job(), blueprint(workload=workload)).errors
    assert (str(error), error.code) == (f"{POLICY}.{field}: Forbidden: {GATE.format(gate)}", CLUSTER_LACKS)
    assert pipeline(reader).review(train_job(), blueprint(workload={"disruptionMode": "Pod"})).errors == ()


@pytest.mark.parametrize(
    ("workload", "dry_run", "error"),
    [
        pytest.param({"topologyKey": "a/b"}, TOPOLOGY, "TopologyAwareWorkloadScheduling", id="topology"),
        pytest.param({"disruptionMode": "PodGroup"}, DISRUPTION, "WorkloadAwarePreemption", id="disruption"),
        pytest.param({}, None, "install JobSet v0.12 or later", id="old-jobset"),
    ],
)
def test_what_is_refused_is_not_left_out(workload: Object, dry_run: str | None, error: str) -> None:
    """Where admission only warns, as in v1alpha1, no gang is made of less; one that exists goes on."""
    reader = cluster(V1ALPHA2, *([dry_run] if dry_run else []))
    if dry_run is None:
        reader.refusals = {(JOBSETS, "workload-membership"): "dropped"}
    found = blueprint(replicated_job("node"), workload=workload)
    v1alpha1 = Pipeline(pipeline(reader).plugins, profile=V1ALPHA1_PROFILE)
    with pytest.raises(BuildError, match=error):
        v1alpha1.build(train_job(), found)

    metadata = {"name": GROUP, "namespace": "default"}
    reader.add({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": metadata})

    assert {each.resource.kind for each in v1alpha1.build(train_job(), found)} == {"Workload", "PodGroup", "JobSet"}


@pytest.mark.parametrize(
    "order",
    [
        pytest.param({"dependsOn": [{"name": "ps", "status": "Ready"}]}, id="dependsOn"),
        pytest.param({}, id="in-order"),
    ],
)
def test_members_that_wait_for_each_other(order: Object) -> None:
    """They would never find a place together: none of them is created before the others have one."""
    jobs = replicated_job("ps", {"name": "tensorflow", "image": "i"}), replicated_job("node", **order)
    jobset = {} if order else {"startupPolicy": {"startupPolicyOrder": "InOrder"}}
    reader = cluster()
    plugins = Registry([TensorFlow(), Workload(reader), JobSetPlugin(reader)])
    found = blueprint(*jobs, policy={"numNodes": 2, "tensorflow": {}}, **jobset)
    (error,) = Pipeline(plugins).review(train_job(), found).errors
    assert str(error) == (
        "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].dependsOn[0].name: Invalid value: "
        '"ps": must be no member of the gang, whose pods start together; podGroupPolicy: {} is no gang'
    )


def test_without_the_api() -> None:
    """A TrainJob is refused with the settings of Kubernetes as long as there are no PodGroups, and then built."""
    reader = cluster(None)
    (error,) = pipeline(reader).review(train_job(), blueprint()).errors
    assert (error.field, error.code) == (POLICY, CLUSTER_LACKS)
    for part in ("GenericWorkload", "GangScheduling", "--runtime-config=scheduling.k8s.io/v1beta1=true", "v1alpha2"):
        assert part in str(error)
    with pytest.raises(BuildError, match="does not serve podgroups"):
        pipeline(reader).build(train_job(), blueprint())

    reader.unserved = cluster(V1ALPHA2).unserved

    kinds = {component.resource.kind for component in pipeline(reader).build(train_job(), blueprint())}
    assert kinds == {"Workload", "PodGroup", "JobSet"}


@pytest.mark.parametrize(
    ("jobs", "error"),
    [
        pytest.param(
            [replicated_job("node", pod=claims("gpu"))],
            "names no claim in spec.resourceClaims of the pods of node; add it there",
            id="absent",
        ),
        pytest.param(
            [replicated_job("launcher", pod=claims("imex")), replicated_job("node", pod=claims("imex", template="x"))],
            "names another claim in node than in launcher; a gang shares one",
            id="another",
        ),
        pytest.param(
            [replicated_job("launcher", pod=claims("imex")), replicated_job("node")],
            "names no claim in spec.resourceClaims of the pods of node; add it there",
            id="not-in-all",
        ),
    ],
)
def test_claims_that_the_pods_do_not_share(jobs: list[Object], error: str) -> None:
    """A claim of the group is a claim of each pod, or the pods would wait for another."""
    policy = {"mpi": {"runLauncherAsNode": True}} if len(jobs) > 1 else {"torch": {}}
    found = blueprint(*jobs, policy={"numNodes": 2} | policy, workload={"resourceClaims": ["imex"]})
    expected = [f'{POLICY}.resourceClaims: Invalid value: "imex": {error}']
    assert [str(each) for each in pipeline().review(train_job(**MPIRUN), found).errors] == expected
    (in_v1alpha1,) = build_errors(*jobs, policy={"numNodes": 2} | policy, workload={"resourceClaims": ["imex"]})
    assert in_v1alpha1.startswith(f'{POLICY}.resourceClaims: Invalid value: "imex": names ')


@pytest.mark.parametrize(
    ("launcher", "node", "error"),
    [
        pytest.param({"schedulerName": "default-scheduler"}, {}, None, id="default-scheduler"),
        pytest.param(
            {"schedulerName": "volcano"},
            {},
            'schedulerName: Invalid value: "default-scheduler": must be that of launcher, volcano',
            id="scheduler",
        ),
        pytest.param(
            {},
            {"priorityClassName": "high"},
            'priorityClassName: Invalid value: "high": must be that of launcher, none',
            id="priority",
        ),
    ],
)
def test_one_scheduler_and_priority(launcher: Object, node: Object, error: str | None) -> None:
    """kube-scheduler places no pods of one group that have several."""
    policy = {"numNodes": 2, "mpi": {"runLauncherAsNode": True}}
    jobs = replicated_job("launcher", pod=launcher), replicated_job("node", pod=node)
    found = blueprint(*jobs, policy=policy)
    path = "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec"
    expected = [] if error is None else [f"{path}.{error}: all pods of a gang have the same"]
    assert [str(each) for each in pipeline().review(train_job(**MPIRUN), found).errors] == expected
    if error is not None:
        (in_v1alpha1,) = build_errors(*jobs, policy=policy)
        assert in_v1alpha1.endswith(": all pods of a gang have the same")


@pytest.mark.parametrize(
    ("scheduler", "warned"),
    [
        pytest.param(None, False, id="absent"),
        pytest.param("default-scheduler", False, id="default"),
        pytest.param("volcano", True, id="another"),
    ],
)
def test_scheduler(scheduler: str | None, warned: bool) -> None:
    """Who names another scheduler learns that it may not know the group."""
    node = replicated_job("node", pod={} if scheduler is None else {"schedulerName": scheduler})
    review = pipeline().review(train_job(), blueprint(node))
    text = (
        "is volcano, which may not know PodGroups of Kubernetes and then decides about each pod alone; leave it out "
        "for the default scheduler"
    )
    assert review.errors == ()
    assert [str(warning) for warning in review.warnings] == ([f"{NODE}.schedulerName: {text}"] if warned else [])


def test_priorities_under_the_setting() -> None:
    """Whose runtime asks for no gang learns how it stays so."""
    launcher, node = replicated_job("launcher"), replicated_job("node", pod={"priorityClassName": "low"})
    found = DefaultGang(lambda: "workload").applied(
        runtime_object(launcher, node, policy={"numNodes": 2, "mpi": {"runLauncherAsNode": True}})
    )
    (error,) = pipeline().review(train_job(**MPIRUN), ClusterTrainingRuntime.from_object(found)).errors
    assert str(error).endswith(
        '[node].template.spec.template.spec.priorityClassName: Invalid value: "low": must be that of launcher, none: '
        "all pods of a gang have the same; podGroupPolicy: {} in the runtime keeps gangScheduling of the manager's "
        "configuration from making a gang"
    )


def test_a_scheduler_of_the_setting() -> None:
    """Nobody who trains is warned of a profile of kube-scheduler that the manager's configuration names."""
    applied = DefaultGang(lambda: "workload", "packing").applied(runtime_object(replicated_job("node")))
    found = ClusterTrainingRuntime.from_object(applied)
    review = pipeline().review(train_job(), found)
    assert (review.errors, review.warnings) == ((), ())
    (jobset,) = (each.object for each in pipeline().build(train_job(), found) if each.resource == JOBSETS)
    assert jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["schedulerName"] == "packing"


def test_a_runtime_of_another_policy() -> None:
    """Without the policy nothing of it is built, whatever the cluster serves."""
    components = pipeline().build(train_job(), runtime(policy={"torch": {}}))
    (jobset,) = (component.object for component in components)
    assert groups_of(jobset) == {"node": None}
