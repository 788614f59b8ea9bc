"""What admission says about runtimes that it accepts."""

from __future__ import annotations

import pytest

from tests.framework.static_reader import StaticReader
from tests.webhooks.bad_runtimes import NODE_POD
from tests.webhooks.blueprints import STEP, blueprint, container, job, replicated_job
from tests.webhooks.requests import admit
from trainer.api.trainjob import TrainJob
from trainer.cli.manifests import runtimes
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.metrics import Metrics
from trainer.kube.objects import Object
from trainer.manager import built_in_plugins
from trainer.plugins.jobset import JobSetPlugin
from trainer.plugins.volcano import POD_GROUPS


def labelled(obj: Object, **labels: str) -> Object:
    """A copy with labels."""
    return obj | {"metadata": obj["metadata"] | {"labels": labels}}


DEPRECATED = labelled(blueprint(), **{"trainer.kubeflow.org/support": "deprecated"})


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(blueprint(), id="cluster"),
        pytest.param(blueprint(kind="TrainingRuntime"), id="namespaced"),
        pytest.param(blueprint(policy={"torch": {"numProcPerNode": 4}}), id="number-of-processes-as-a-number"),
        pytest.param(blueprint(replicated_job("node", {"name": "trainer"})), id="image-left-to-train-jobs"),
        pytest.param(blueprint(replicated_job("Node", container("a"))), id="as-the-kep-writes-it"),
        pytest.param(blueprint(replicated_job("launcher"), replicated_job("worker")), id="nobody-trains"),
        *(pytest.param(runtime, id=runtime["metadata"]["name"]) for runtime in runtimes()),
    ],
)
async def test_accepted(obj: Object) -> None:
    """What TrainJobs can be built on is accepted without a word."""
    response = await admit(obj)

    assert (response.allowed, response.message, response.warnings) == (True, "", ())


@pytest.mark.parametrize(
    ("obj", "warning"),
    [
        pytest.param(
            blueprint(podGroupPolicy={"coscheduling": {}}, kind="TrainingRuntime"),
            "spec.template.spec.replicatedJobs[node].template.spec.template.spec.schedulerName: is absent, so the "
            "default scheduler decides about each pod alone, unless it has the coscheduling plugin; name the scheduler "
            "that has it, even default-scheduler",
            id="gang-without-a-scheduler",
        ),
        pytest.param(
            DEPRECATED,
            "metadata.labels[trainer.kubeflow.org/support]: "
            "TrainJobs that use this runtime are warned that it is deprecated",
            id="deprecated",
        ),
        pytest.param(
            blueprint(replicated_job(), replicated_job("extra", step="trianer")),
            f"spec.template.spec.replicatedJobs[1].template.metadata.labels[{STEP}]: "
            "there is no step 'trianer'; known steps: trainer, dataset-initializer, model-initializer",
            id="unknown-step",
        ),
        pytest.param(
            blueprint(
                replicated_job("node", container(resources={"limits": {"nvidia.com/gpu": 8}})),
                policy={"torch": {"numProcPerNode": "2"}},
            ),
            "spec.mlPolicy.torch.numProcPerNode: starts 2 processes on a node with 8 GPUs; "
            "gpu or auto starts one for each GPU",
            id="idle-gpus",
        ),
    ],
)
async def test_accepted_with_a_warning(obj: Object, warning: str) -> None:
    """What works, but perhaps not as meant, is accepted with a warning."""
    response = await admit(obj)

    assert (response.allowed, response.warnings) == (True, (warning,))


async def test_what_the_cluster_lacks_may_come_later() -> None:
    """A runtime for gangs may be there before the scheduler is; whoever uses it is refused until then."""
    plugins = Pipeline(built_in_plugins(StaticReader(unserved=[POD_GROUPS])))
    gang = blueprint(replicated_job("node", pod={"schedulerName": "volcano"}), podGroupPolicy={"volcano": {}})

    response = await admit(gang, plugins=plugins)

    lack = "spec.podGroupPolicy.volcano: the cluster does not have podgroups.scheduling.volcano.sh; install Volcano"
    until = "no TrainJob can run on this runtime until then"
    assert (response.allowed, response.warnings) == (True, (f"{lack} with its CRD; {until}",))
    assert not (await admit(job(runtime="gang"), plugins=plugins)).allowed


async def test_a_plugin_that_is_not_installed() -> None:
    """A runtime may be there before the plugin that serves its policy."""
    plugins = Pipeline(Registry([JobSetPlugin(StaticReader())]))

    response = await admit(blueprint(policy={"jax": {}}), plugins=plugins)

    warning = (
        "spec.mlPolicy.jax: no plugin of this controller manager serves it; install one, or use another runtime; "
        "no TrainJob can run on this runtime until then"
    )
    assert (response.allowed, response.warnings) == (True, (warning,))


@pytest.mark.parametrize("kind", ["ClusterTrainingRuntime", "TrainingRuntime"])
async def test_metadata_changes_always(kind: str) -> None:
    """Labels and finalizers change even of a runtime that would be refused today; the spec of none does."""
    old = blueprint(replicated_job(replicas=2), kind=kind)

    assert (await admit(labelled(old, a="b"), old)).allowed
    assert not (await admit(blueprint(kind=kind), old)).allowed


async def test_a_default_is_no_change() -> None:
    """A runtime that was stored without webhooks keeps its spec as it is, and so does one that is applied again."""
    bare = blueprint(policy={"torch": {"numProcPerNode": 2}})
    defaulted = blueprint(policy={"numNodes": 1, "torch": {"numProcPerNode": "2"}})

    for old, new in ((bare, bare), (defaulted, bare), (defaulted, defaulted)):
        assert (await admit(labelled(new, a="b"), old)).allowed


HEADLESS = {"network": {"enableDNSHostnames": False}}
NO_HOST_NAMES = (
    "spec.template.spec.network.enableDNSHostnames: Invalid value: false: must not be false: training nodes find each "
    "other by their DNS names"
)


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        pytest.param(
            blueprint(replicated_job("node", {"name": "trainer"}), policy={"torch": {}}, jobset=HEADLESS),
            [NO_HOST_NAMES],
            id="image-and-host-names",
        ),
        pytest.param(
            blueprint(
                replicated_job("node", container(volumeMounts=[{"name": "data", "mountPath": "/data"}])),
                policy={"torch": {}},
                jobset=HEADLESS,
            ),
            [
                NO_HOST_NAMES,
                (
                    f'{NODE_POD}.containers[trainer].volumeMounts[0].name: Invalid value: "data": '
                    "is not a volume of the pods of node"
                ),
            ],
            id="two-errors-of-the-runtime",
        ),
    ],
)
async def test_what_no_train_job_can_set_is_refused(obj: Object, errors: list[str]) -> None:
    """An error that a TrainJob can avoid hides none that it cannot."""
    response = await admit(obj)

    assert {f"{cause.field}: {cause.message}" for cause in response.causes} == set(errors)


async def test_what_the_cluster_lacks_hides_nothing() -> None:
    """A runtime is checked although the plugin that serves its policy is not installed yet."""
    plugins = Pipeline(Registry([JobSetPlugin(StaticReader())]))
    mounts = [{"name": "data", "mountPath": "/data"}]
    node = replicated_job("node", container(volumeMounts=mounts))

    response = await admit(blueprint(node, policy={"jax": {}}), plugins=plugins)

    assert [cause.field.rpartition(".")[2] for cause in response.causes] == ["name"]
    assert len(response.warnings) == 1


async def test_a_launcher_waits_for_nodes_of_any_name() -> None:
    """With InOrder, the trainer is known by its label as well as by its name."""
    jobs = replicated_job("launcher"), replicated_job("worker", step="trainer")
    order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}}

    response = await admit(blueprint(*jobs, policy={"mpi": {}}, jobset=order))

    assert (response.allowed, response.message) == (True, "")


async def test_a_plugin_that_cannot_go_on_after_an_error() -> None:
    """What a plugin raises on a runtime that was refused already is not reported, and not counted as its defect."""

    class Sure:
        name = "sure"
        ml_policy_sources = frozenset({"jax"})

        def enforce_ml_policy(self, info: RuntimeInfo, train_job: TrainJob) -> None:
            if not info.main_container.image:
                raise KeyError("image")

    metrics = Metrics()
    plugins = Pipeline(Registry([JobSetPlugin(StaticReader()), Sure()]), metrics=metrics)
    bare = blueprint(replicated_job("node", {"name": "trainer"}), policy={"jax": {}})

    response = await admit(bare, plugins=plugins)

    assert (response.allowed, response.message, response.warnings) == (True, "", ())
    where = {"plugin": "sure", "phase": "enforce_ml_policy"}
    assert metrics.registry.get_sample_value("trainer_plugin_errors_total", where) == 0
