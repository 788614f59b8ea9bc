"""Flux: what is installed in the pods, which command they run, and what is refused."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.framework.samples import replicated_job, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.api.trainingruntime import ClusterTrainingRuntime
from trainer.api.trainjob import TrainJob
from trainer.framework.building.extraction import extract
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.runtime_info import RuntimeInfo
from trainer.framework.startup.registry import Registry
from trainer.kube.objects import Object
from trainer.plugins.flux.plugin import Flux
from trainer.plugins.jobset import JobSetPlugin

PIPELINE = Pipeline(Registry([Flux(StaticReader()), JobSetPlugin(StaticReader())]))
START = ["/bin/bash", "/etc/flux-config/entrypoint.sh"]
GPUS = {"limits": {"nvidia.com/gpu": 4}}


def flux_runtime(
    container: Object | None = None, *, pod: Object | None = None, job: Object | None = None, **policy: Any
) -> ClusterTrainingRuntime:
    """One replicated Job of nodes."""
    settings = {"backoffLimit": 0} if job is None else job
    nodes = replicated_job("node", {"name": "trainer", "image": "image"} | (container or {}), pod=pod, job=settings)
    return runtime(nodes, policy={"numNodes": 2, "flux": policy})


def enforced(blueprint: ClusterTrainingRuntime, **spec: Any) -> RuntimeInfo:
    """RuntimeInfo after the plugin."""
    job = train_job(**spec)
    info = extract(job, blueprint)
    Flux(StaticReader()).enforce_ml_policy(info, job)
    return info


def scripts(blueprint: ClusterTrainingRuntime, job: TrainJob | None = None, **spec: Any) -> dict[str, str]:
    """The variables of both scripts by their names."""
    components = PIPELINE.build(job or train_job(**spec), blueprint)
    (data,) = (each.object["data"] for each in components if each.resource.kind == "ConfigMap")
    assert sorted(data) == ["entrypoint.sh", "init.sh"]
    found = re.findall(r"^(\w+)=('[^']*'|[^'\s]+)$", "".join(data.values()).split("set -eu")[0], re.MULTILINE)
    found += re.findall(r"^(\w+)=('[^']*'|[^'\s]+)$", data["init.sh"].split("set -eu")[0], re.MULTILINE)
    return {name: value.strip("'") for name, value in found}


def findings(blueprint: ClusterTrainingRuntime, **spec: Any) -> list[str]:
    """What the plugin says about a TrainJob."""
    job = train_job(**spec)
    return [str(each) for each in Flux(StaticReader()).validate(extract(job, blueprint), None, job)]


@pytest.mark.parametrize(
    ("container", "trainer", "arguments"),
    [
        pytest.param({}, {}, [""], id="none"),
        pytest.param({"command": ["lmp"], "args": ["-v"]}, {"args": ["2"]}, ["lmp 2"], id="args-of-the-train-job"),
        pytest.param({}, {"command": ["lmp -v 2"]}, ["lmp -v 2"], id="one-line"),
        pytest.param({}, {"command": ["'lmp -v 2'"]}, ["lmp -v 2"], id="one-word"),
    ],
)
def test_command(container: Object, trainer: Object, arguments: list[str]) -> None:
    """The command follows the entrypoint in one argument where that is enough, else word by word."""
    found = enforced(flux_runtime(container), trainer=trainer).main_container
    assert (found.command, found.args) == ([*START, *arguments], [])


@pytest.mark.parametrize(
    ("container", "policy", "trainer", "options", "resources"),
    [
        pytest.param({}, {}, {}, "-N 2 -n 2", "--cores=0", id="defaults"),
        pytest.param({}, {}, {"numNodes": 1}, "-N 1 -n 1", "--cores=0", id="one-node"),
        pytest.param({}, {"numProcPerNode": 2}, {"numProcPerNode": 3}, "-N 2 -n 6", "--cores=0-2", id="train-job"),
        pytest.param(
            {}, {}, {"resourcesPerNode": GPUS}, "-N 2 -n 2 -g 4", "--cores=0 --gpu=0-3", id="gpus-of-the-train-job"
        ),
        pytest.param(
            {"resources": GPUS},
            {},
            {"numProcPerNode": "gpu"},
            "-N 2 -n 8 -g 1",
            "--cores=0-3 --gpu=0-3",
            id="one-for-each-gpu",
        ),
    ],
)
def test_processes(container: Object, policy: Object, trainer: Object, options: str, resources: str) -> None:
    """Flux knows all nodes, processes and GPUs; the TrainJob wins over the runtime."""
    found = scripts(flux_runtime(container, **policy), trainer=trainer)
    assert found["options"] == f"{options} -o cpu-affinity=off"
    assert found["resources"] == resources


@pytest.mark.parametrize(
    ("nodes", "hosts"), [pytest.param(1, "demo-node-0-[0]", id="one"), pytest.param(12, "demo-node-0-[0-11]", id="12")]
)
def test_broker(nodes: int, hosts: str) -> None:
    """The configuration names all hosts and how to reach them; the first one leads."""
    found = scripts(flux_runtime(), trainer={"numNodes": nodes})
    assert (found["lead"], found["hosts"]) == ("demo-node-0-0", hosts)
    assert tomllib.loads(found["broker_toml"]) == {
        "access": {"allow-guest-user": True, "allow-root-owner": True},
        "resource": {"path": "/mnt/flux/config/etc/flux/system/R"},
        "bootstrap": {
            "curve_cert": "/mnt/flux/config/etc/curve/curve.cert",
            "default_port": 8050,
            "default_bind": "tcp://eth0:%p",
            "default_connect": "tcp://%h.demo:%p",
            "hosts": [{"host": hosts}],
        },
        "archive": {
            "dbpath": "/mnt/flux/config/var/lib/flux/job-archive.sqlite",
            "period": "1m",
            "busytimeout": "50s",
        },
        "sched-fluxion-qmanager": {"queue-policy": "fcfs"},
    }


@pytest.mark.parametrize(
    ("container", "trainer", "expected"),
    [
        pytest.param({}, [], ("ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy", "eth0"), id="defaults"),
        pytest.param(
            {"env": [{"name": "FLUX_NETWORK_DEVICE", "value": "ib0"}, {"name": "FLUX_VIEW_IMAGE", "value": "view:1"}]},
            [],
            ("view:1", "ib0"),
            id="runtime",
        ),
        pytest.param(
            {"env": [{"name": "FLUX_NETWORK_DEVICE", "value": "ib0"}, {"name": "FLUX_VIEW_IMAGE", "value": "view:1"}]},
            [{"name": "FLUX_NETWORK_DEVICE", "value": 'a"\x7f\n'}],
            ("view:1", 'a"\x7f\n'),
            id="train-job",
        ),
        pytest.param(
            {},
            [{"name": "FLUX_NETWORK_DEVICE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ("ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy", "eth0"),
            id="not-known-yet",
        ),
    ],
)
def test_settings(container: Object, trainer: list[Object], expected: tuple[str, str]) -> None:
    """Variables choose the image of Flux and the network device, whatever characters they have."""
    blueprint = flux_runtime(container)
    (installer,) = enforced(blueprint, trainer={"env": trainer}).trainer.init_containers
    broker = tomllib.loads(scripts(blueprint, trainer={"env": trainer})["broker_toml"])
    assert (installer.image, broker["bootstrap"]["default_bind"]) == (expected[0], f"tcp://{expected[1]}:%p")


def test_subdomain() -> None:
    """Brokers find each other in the subdomain that the runtime chooses."""
    job = replicated_job("node", {"name": "trainer", "image": "image"})
    found = scripts(runtime(job, policy={"flux": {}}, jobset={"network": {"subdomain": "own"}}))
    assert tomllib.loads(found["broker_toml"])["bootstrap"]["default_connect"] == "tcp://%h.own:%p"


@pytest.mark.parametrize(
    ("blueprint", "job", "message"),
    [
        pytest.param(flux_runtime(), {}, "", id="nothing-wrong"),
        pytest.param(flux_runtime(job={}), {"trainer": {"numNodes": 1}}, "", id="nobody-to-wait-for"),
        pytest.param(
            flux_runtime(job={}),
            {},
            "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.backoffLimit: "
            "should be 0: a node that starts again is of no use, since the brokers of the others may have ended",
            id="brokers-that-start-again",
        ),
        pytest.param(
            flux_runtime(pod={"initContainers": [{"name": "flux-installer", "image": "mine"}]}),
            {},
            "ClusterTrainingRuntime/blueprint spec.template.spec.replicatedJobs[node].template.spec.template.spec."
            'initContainers: Invalid value: "flux-installer": is the name of the init container that installs Flux; '
            "rename yours",
            id="name-of-the-init-container",
        ),
        pytest.param(
            flux_runtime(),
            {"name": "j" * 48},
            f'metadata.name: Invalid value: "{"j" * 48}": is too long by 1: pods get the volume '
            f"{'j' * 48}-flux-entrypoint, of at most 63 characters",
            id="long-name",
        ),
        pytest.param(
            flux_runtime(),
            {"trainer": {"numProcPerNode": "cpu"}},
            'spec.trainer.numProcPerNode: Invalid value: "cpu": must be a number, gpu or auto: a Flux runtime does '
            "not count CPUs",
            id="one-for-each-cpu",
        ),
        pytest.param(
            flux_runtime(),
            {"trainer": {"numProcPerNode": "gpu"}},
            'spec.trainer.numProcPerNode: Invalid value: "gpu": must not be gpu without GPUs; add them to '
            "spec.trainer.resourcesPerNode",
            id="no-gpus",
        ),
        pytest.param(
            flux_runtime({"resources": GPUS}),
            {"trainer": {"numProcPerNode": 3}},
            "spec.trainer.numProcPerNode: Invalid value: 3: must divide 4, the GPUs of a node: Flux gives each process "
            "as many",
            id="gpus-that-cannot-be-shared",
        ),
        pytest.param(
            flux_runtime({"resources": GPUS}, numProcPerNode=8),
            {},
            "ClusterTrainingRuntime/blueprint spec.mlPolicy.flux.numProcPerNode: Invalid value: 8: must divide 4, the "
            "GPUs of a node: Flux gives each process as many",
            id="gpus-of-the-runtime",
        ),
    ],
)
def test_findings(blueprint: ClusterTrainingRuntime, job: Object, message: str) -> None:
    """Each mistake has one message with field, rule and remedy."""
    assert findings(blueprint, **job) == ([message] if message else [])
