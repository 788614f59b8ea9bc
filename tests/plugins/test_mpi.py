"""MPI: the environment of launcher and nodes, in which order they start, and when the training is over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.framework.samples import env_of, replicated_job, train_job
from tests.framework.static_reader import StaticReader
from tests.plugins.mpi_samples import built, enforced, findings, mpi_runtime
from trainer.framework.building.extraction import extract
from trainer.plugins.mpi.plugin import MPI

SSH = (
    "-o BatchMode=yes -o ConnectionAttempts=10 -o LogLevel=ERROR -o StrictHostKeyChecking=no "
    "-o UserKnownHostsFile=/dev/null -i /root/.ssh/id_rsa"
)


@pytest.mark.parametrize(
    ("implementation", "environment"),
    [
        pytest.param(
            "OpenMPI",
            {
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_set_default_slots": "5",
                "OMPI_MCA_plm_rsh_args": SSH,
                "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
                "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
                "PRTE_MCA_prte_set_default_slots": "5",
                "PRTE_MCA_prte_do_not_resolve": "false",
                "PRTE_MCA_plm_ssh_args": SSH,
            },
            id="OpenMPI",
        ),
        pytest.param(
            "Intel",
            {
                "I_MPI_HYDRA_IFACE": "eth0",
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_HYDRA_BOOTSTRAP": "ssh",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": SSH,
                "I_MPI_PERHOST": "5",
            },
            id="Intel",
        ),
        pytest.param(
            "MPICH",
            {
                "HYDRA_IFACE": "eth0",
                "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "HYDRA_LAUNCHER": "ssh",
                "HYDRA_LAUNCHER_EXTRA_ARGS": SSH,
            },
            id="MPICH",
        ),
    ],
)
def test_environment_of_the_launcher(implementation: str, environment: dict[str, str]) -> None:
    """Each implementation finds hostfile, slots and SSH key in its own variables; the nodes need none."""
    info = enforced(mpi_runtime(mpiImplementation=implementation, numProcPerNode=5))
    assert info.launcher is not None
    assert env_of({"env": info.launcher.main_container.env}) == environment
    assert info.trainer.main_container.env == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("OMPI_ALLOW_RUN_AS_ROOT", "0", id="a-default-gives-way"),
        pytest.param("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile", id="what-is-reserved-does-not"),
    ],
)
def test_variables_of_the_runtime(name: str, value: str) -> None:
    """The runtime may change defaults, and cannot lead the launcher astray."""
    launcher = replicated_job("launcher", {"name": "trainer", "env": [{"name": name, "value": "0"}]})
    info = enforced(mpi_runtime(replicated_job("node"), launcher))
    assert env_of({"env": info.main_container.env})[name] == value


@pytest.mark.parametrize(
    ("ports", "options"),
    [
        pytest.param([{"name": "ssh", "containerPort": 2222}], f"{SSH} -p 2222", id="port-called-ssh"),
        pytest.param([{"name": "metrics", "containerPort": 80}], SSH, id="other-ports"),
    ],
)
def test_port_of_ssh(ports: Any, options: str) -> None:
    """The launcher connects to the port that the nodes declare for ssh; without one, to that which its image knows."""
    node = replicated_job("node", {"name": "trainer", "ports": ports})
    info = enforced(mpi_runtime(node, replicated_job("launcher")))
    assert env_of({"env": info.main_container.env})["OMPI_MCA_plm_rsh_args"] == options


def test_keys_and_hostfile_are_mounted() -> None:
    """Launcher and nodes find the keys in the directory of the runtime, and only the launcher finds the hostfile."""
    info = enforced(mpi_runtime(SSHAuthMountPath="/home/mpiuser/.ssh"))
    assert info.launcher is not None
    keys = {"name": "mpi-ssh-auth", "mountPath": "/home/mpiuser/.ssh", "readOnly": True}
    hostfile = {"name": "mpi-hostfile", "mountPath": "/etc/mpi", "readOnly": True}
    assert info.trainer.main_container.volume_mounts == [keys]
    assert info.launcher.main_container.volume_mounts == [keys, hostfile]
    assert [volume["name"] for volume in info.trainer.volumes] == ["mpi-ssh-auth"]
    assert [volume["name"] for volume in info.launcher.volumes] == ["mpi-ssh-auth", "mpi-hostfile"]
    assert "-i /home/mpiuser/.ssh/id_rsa" in env_of({"env": info.main_container.env})["OMPI_MCA_plm_rsh_args"]


def test_sidecars_do_not_get_the_key() -> None:
    """Nothing is mounted in containers that do not train."""
    node = replicated_job("node", {"name": "trainer"}, {"name": "sidecar", "image": "i"})
    info = enforced(mpi_runtime(node, replicated_job("launcher")))
    assert [len(container.volume_mounts) for container in info.trainer.containers] == [1, 0]


def started_after(blueprint: Any, **spec: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """The replicated Jobs of the JobSet in their order, and what each of them waits for."""
    jobs = built(blueprint, **spec)["JobSet"]["spec"]["replicatedJobs"]
    return [(job["name"], [(d["name"], d["status"]) for d in job.get("dependsOn") or []]) for job in jobs]


NODE, LAUNCHER, OTHER = replicated_job("node"), replicated_job("launcher"), replicated_job("other")


@pytest.mark.parametrize(
    ("jobs", "jobset", "expected"),
    [
        pytest.param(
            [LAUNCHER, NODE],
            {},
            [("node", []), ("launcher", [("node", "Ready")])],
            id="launcher-first",
        ),
        pytest.param([NODE, LAUNCHER], {}, [("node", []), ("launcher", [("node", "Ready")])], id="launcher-last"),
        pytest.param(
            [LAUNCHER, NODE],
            {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
            [("node", []), ("launcher", [("node", "Ready")])],
            id="in-order-as-in-the-kep",
        ),
        pytest.param(
            [OTHER, replicated_job("launcher", dependsOn=[{"name": "other", "status": "Complete"}]), NODE],
            {},
            [("other", []), ("node", []), ("launcher", [("other", "Complete"), ("node", "Ready")])],
            id="besides-what-the-runtime-says",
        ),
    ],
)
def test_launcher_starts_after_its_nodes(jobs: Any, jobset: Any, expected: Any) -> None:
    """The launcher starts once its nodes are ready, however the runtime orders them."""
    assert started_after(mpi_runtime(*jobs, jobset=jobset)) == expected


@pytest.mark.parametrize(
    ("jobs", "jobset", "targets"),
    [
        pytest.param([NODE, LAUNCHER], {}, ["launcher"], id="launcher"),
        pytest.param([NODE, LAUNCHER, replicated_job("finalizer")], {}, ["launcher", "finalizer"], id="what-follows"),
        pytest.param(
            [NODE, LAUNCHER],
            {"successPolicy": {"operator": "All", "targetReplicatedJobs": ["node"]}},
            ["node"],
            id="as-the-runtime-says",
        ),
    ],
)
def test_success(jobs: Any, jobset: Any, targets: list[str]) -> None:
    """The training is over when everything but the nodes has succeeded: their sshd never ends."""
    jobset = built(mpi_runtime(*jobs, jobset=jobset))["JobSet"]
    assert jobset["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": targets}


def sizes(blueprint: Any, **spec: Any) -> dict[str, tuple[int, int]]:
    """How many Jobs each replicated Job has, and how many pods each of these."""
    jobs = built(blueprint, **spec)["JobSet"]["spec"]["replicatedJobs"]
    return {job["name"]: (job["replicas"], job["template"]["spec"]["parallelism"]) for job in jobs}


@pytest.mark.parametrize(
    ("as_node", "nodes", "expected"),
    [
        pytest.param(False, 1, {"node": (1, 1), "launcher": (1, 1)}, id="one-node"),
        pytest.param(False, 3, {"node": (1, 3), "launcher": (1, 1)}, id="three-nodes"),
        pytest.param(True, 1, {"node": (0, 1), "launcher": (1, 1)}, id="the-launcher-alone"),
        pytest.param(True, 3, {"node": (1, 2), "launcher": (1, 1)}, id="launcher-and-two-nodes"),
    ],
)
def test_number_of_pods(as_node: bool, nodes: int, expected: Any) -> None:
    """As many pods train as there are nodes; a launcher that trains is one of them, and may be the only one."""
    assert sizes(mpi_runtime(runLauncherAsNode=as_node), trainer={"numNodes": nodes}) == expected
    assert sizes(mpi_runtime(nodes=nodes, runLauncherAsNode=as_node)) == expected


def test_settings_of_the_trainer() -> None:
    """The launcher gets the command; image and variables are for launcher and nodes."""
    trainer = {"image": "mine", "command": ["mpirun", "train"], "env": [{"name": "A", "value": "1"}]}
    pods = {
        job["name"]: job["template"]["spec"]["template"]["spec"]["containers"][0]
        for job in built(mpi_runtime(), trainer=trainer)["JobSet"]["spec"]["replicatedJobs"]
    }
    assert {name: pod["image"] for name, pod in pods.items()} == {"node": "mine", "launcher": "mine"}
    assert pods["launcher"]["command"] == ["mpirun", "train"]
    assert "command" not in pods["node"]
    assert [env_of(pod)["A"] for pod in pods.values()] == ["1", "1"]


GPUS = {"requests": {"nvidia.com/gpu": 4}, "limits": {"nvidia.com/gpu": 4}}


def blueprint(policy: Any, resources: Any) -> Any:
    """A runtime whose nodes have these resources."""
    node = replicated_job("node", {"name": "trainer", "resources": resources})
    return mpi_runtime(node, replicated_job("launcher"), **policy)


@pytest.mark.parametrize(
    ("trainer", "policy", "resources", "slots"),
    [
        pytest.param({}, {}, {}, 1, id="nothing-said"),
        pytest.param({}, {"numProcPerNode": 5}, GPUS, 5, id="runtime"),
        pytest.param({"numProcPerNode": "3"}, {}, {}, 3, id="number-as-string"),
        pytest.param({}, {}, {"limits": {"cpu": 8}}, 1, id="CPUs-do-not-count"),
        pytest.param({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 2}}}, {}, GPUS, 2, id="GPUs-of-the-TrainJob"),
        pytest.param({}, {}, {"limits": {"volcano.sh/vgpu-cores": 50}}, 1, id="a-share"),
        pytest.param({}, {}, {"limits": {"nvidia.com/mig-1g.5gb": 2}}, 2, id="slices"),
    ],
)
def test_slots(trainer: Any, policy: Any, resources: Any, slots: int) -> None:
    """The TrainJob's number wins over the runtime's; without both there is a process for each GPU, or one."""
    job = train_job(trainer=trainer)
    assert MPI(StaticReader()).slots_per_node(extract(job, blueprint(policy, resources)), job) == slots


@pytest.mark.parametrize(
    ("amount", "resources", "errors"),
    [
        pytest.param(
            "cpu",
            {"limits": {"cpu": 8}},
            [
                (
                    'spec.trainer.numProcPerNode: Invalid value: "cpu": must be a number, gpu or auto: '
                    "an MPI runtime does not count CPUs"
                )
            ],
            id="cpu",
        ),
        pytest.param(
            "gpu",
            {},
            [
                (
                    'spec.trainer.numProcPerNode: Invalid value: "gpu": must not be gpu without GPUs; '
                    "add them to spec.trainer.resourcesPerNode"
                )
            ],
            id="gpu-without-GPUs",
        ),
        pytest.param("gpu", GPUS, [], id="gpu"),
        pytest.param("auto", {}, [], id="auto"),
    ],
)
def test_amounts_that_are_no_number(amount: Any, resources: Any, errors: list[str]) -> None:
    """A value that cannot become a number is refused."""
    assert findings(blueprint({}, resources), trainer={"numProcPerNode": amount}) == errors
