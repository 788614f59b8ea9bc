"""Names of pods in commands and variables, as the operators made them."""

from __future__ import annotations

import copy

import pytest

from packages.v1_jobs.tests.conversion.jobs import converted, fields, job, pods, variables
from trainer.kube.objects import Object, mapping_at

SHARED = ("PyTorchJob", {"Master": 1, "Worker": 2})
FIRST = "demo-node-0-0.demo"


@pytest.mark.parametrize(
    ("kind", "roles", "text", "expected"),
    [
        pytest.param(*SHARED, "demo-master-0", FIRST, id="host"),
        pytest.param(*SHARED, "demo-worker-1:23456", "demo-node-0-2.demo:23456", id="counted-behind-the-master"),
        pytest.param(*SHARED, "tcp://demo-master-0:1/x", f"tcp://{FIRST}:1/x", id="url"),
        pytest.param(*SHARED, "--master_addr=demo-master-0", f"--master_addr={FIRST}", id="option"),
        pytest.param(
            *SHARED, "demo-master-0.team.svc.cluster.local", f"{FIRST}.team.svc.cluster.local", id="in-full"
        ),
        pytest.param(*SHARED, "root@demo-master-0,demo-worker-0", f"root@{FIRST},demo-node-0-1.demo", id="several"),
        pytest.param(*SHARED, "/ckpt/demo-worker-0/last", "/ckpt/demo-worker-0/last", id="directory"),
        pytest.param(*SHARED, "my-demo-worker-0", "my-demo-worker-0", id="end-of-another-name"),
        pytest.param(*SHARED, "my-demo-worker-0 ./demo-worker", "my-demo-worker-0 ./demo-worker", id="no-pods"),
        pytest.param(
            "TFJob", {"Chief": 1, "PS": 2, "Worker": 2}, "demo-ps-1 demo-worker-0",
            "demo-ps-0-1.demo demo-node-0-0.demo", id="members",
        ),
        pytest.param("PaddleJob", {"Master": 1, "Worker": 2}, "demo-worker-1", "demo-worker-1-0.demo", id="parted"),
        pytest.param(
            "MPIJob/v2beta1", {"Launcher": 1, "Worker": 2}, "demo-worker-1.demo.team.svc:8 demo-launcher",
            "demo-node-0-1.demo.team.svc:8 demo-launcher-0-0.demo", id="mpi-operator",
        ),
    ],
)  # fmt: skip
def test_hosts(kind: str, roles: dict[str, int], text: str, expected: str) -> None:
    """A host is called by its name here, in commands as in variables; nothing else is changed."""
    container: Object = {"command": ["run", text], "args": [text], "env": [{"name": "A", "value": text}]}
    result = converted(job(kind, roles, container))

    for pod in pods(result).values():
        (main,) = pod["containers"]
        assert (main["command"][1], main["args"][0], variables(pod)["A"]) == (expected,) * 3
    assert not [field for field in fields(result) if ".containers" in field]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("ssh demo-worker-$i", "hosts are demo-node-0-INDEX.demo", id="number"),
        pytest.param("ping ${JOB}-master-0", "hosts are", id="job"),
        pytest.param("ping $(JOB)-master-0", "hosts are", id="variable-of-kubernetes"),
        pytest.param("python -c 'f\"{job}-worker-{i}\"'", "hosts are", id="format"),
        pytest.param('[ "$HOSTNAME" = demo-master-0 ] && train', "hosts are", id="compared"),
        pytest.param("rank=${HOSTNAME##*-}", "takes the name of its host apart", id="cut"),
        pytest.param("hostname | cut -d- -f3", "takes the name of its host apart", id="piped"),
        pytest.param("socket.gethostname().split('-')[-1]", "takes the name of its host apart", id="split"),
        pytest.param('os.environ["HOSTNAME"].rsplit("-")', "takes the name of its host apart", id="environ"),
        pytest.param("echo $HOSTNAME | grep -o '[0-9]*$'", "takes the name of its host apart", id="echo"),
        pytest.param('cut -d- -f3 <<< "$HOSTNAME"', "takes the name of its host apart", id="here-string"),
        pytest.param("[[ $HOSTNAME == *master* ]] && x", "takes the name of its host apart", id="glob"),
        pytest.param('[ x = "$(hostname)" ] && x', "takes the name of its host apart", id="compared-behind"),
        pytest.param("case $(hostname) in *-master-0) x;; esac", "takes the name of its host apart", id="case"),
        pytest.param("'master' in socket.gethostname()", "takes the name of its host apart", id="contained"),
        pytest.param("'master' in os.environ['HOSTNAME']", "takes the name of its host apart", id="contained-environ"),
        pytest.param("os.uname().nodename.endswith('-0')", "takes the name of its host apart", id="end"),
        pytest.param("int(os.environ['HOSTNAME'][-1])", "takes the name of its host apart", id="last-letter"),
        pytest.param("re.search(r'(\\d+)$', socket.gethostname())", "takes the name of its host apart", id="pattern"),
        pytest.param(
            "kubectl get pods -l training.kubeflow.org/job-name=demo",
            "asks for labels that pods do not have here: jobset.sigs.k8s.io/jobset-name",
            id="labels",
        ),
    ],
)
def test_problems(text: str, problem: str) -> None:
    """What builds, compares or takes apart such a name is lost, with how hosts are called."""
    (finding,) = converted(job(*SHARED, {"command": ["bash", "-c", text]})).findings[:1]

    assert finding.field == "spec.pytorchReplicaSpecs[Master].template.spec.containers[pytorch].command"
    assert problem in finding.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("torchrun --nnodes=$PET_NNODES train.py", id="usual"),
        pytest.param("echo $HOSTNAME; hostname -i", id="name-of-the-host"),
        pytest.param("ls /data/worker-0 coworker-1", id="other-names"),
        pytest.param("HOST=$HOSTNAME python train.py --host=$(hostname) | tee $HOSTNAME.log", id="handed-on"),
        pytest.param("for h in $HOSTNAME; do echo $h; done", id="listed"),
        pytest.param("print(socket.gethostname(), os.environ['HOSTNAME'])", id="printed"),
        pytest.param("cat /ckpt/demo-worker-0/log", id="directory"),
        pytest.param("cat /etc/mpi/discover_hosts.sh", id="no-MPI"),
    ],
)
def test_no_problems(text: str) -> None:
    """Nothing is lost without a reason."""
    assert converted(job(*SHARED, {"command": ["bash", "-c", text]})).findings == ()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        pytest.param(
            "horovodrun --host-discovery-script /etc/mpi/discover_hosts.sh", "discover_hosts.sh", id="elastic"
        ),
        pytest.param("mpirun -mca plm_rsh_agent /etc/mpi/kubexec.sh", "kubexec.sh", id="agent"),
    ],
)
def test_files_of_the_operators(text: str, name: str) -> None:
    """A file that only the operators wrote is lost."""
    found = converted(job("MPIJob/v2beta1", {"Launcher": 1, "Worker": 1}, {"command": ["sh", "-c", text]})).findings

    assert f"reads {name} of the operator" in found[0].message


def test_a_name_that_the_server_chooses() -> None:
    """Nobody can have written it; what builds it is lost."""
    obj = job(*SHARED, {"command": ["ping", "$(JOB)-worker-0", "-worker-0"]})
    obj["metadata"] = {"generateName": "demo-"}
    result = converted(obj)

    assert pods(result)["node"]["containers"][0]["command"] == ["ping", "$(JOB)-worker-0", "-worker-0"]
    assert {finding.message.partition("; ")[2] for finding in result.findings} == {"hosts are NAME-node-0-INDEX.NAME"}


@pytest.mark.parametrize("steps", [("readinessProbe",), ("lifecycle", "preStop")], ids=["probe", "hook"])
def test_what_the_kubelet_runs(steps: tuple[str, ...]) -> None:
    """Commands of probes and hooks call hosts by their names here, too."""
    container: Object = {"exec": {"command": ["nc", "-z", "demo-master-0", "80"]}}
    for step in reversed(steps):
        container = {step: container}
    result = converted(job(*SHARED, container))

    (main,) = pods(result)["node"]["containers"]
    assert mapping_at(main, *steps, "exec")["command"][2] == FIRST
    assert result.findings == ()

    container[steps[0]] = copy.deepcopy(container[steps[0]])
    mapping_at(container, *steps, "exec")["command"][2] = "demo-worker-$i"
    (finding,) = converted(job(*SHARED, container)).findings[:1]
    assert finding.field.endswith(".".join((*steps, "exec.command")))
