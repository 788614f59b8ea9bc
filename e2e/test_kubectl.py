"""The real kubectl works on TrainJobs and what they become."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import yaml

from e2e.cluster import Cluster, train_job
from e2e.kubectl import BIN
from e2e.waiting import until

COUNT = "import time\nfor i in range(5):\n    print('step', i)\n    time.sleep(0.3)"


def test_everything_that_a_job_becomes(cluster: Cluster) -> None:
    """TrainJob, JobSet, Job and pods are listed together, and a log is followed to the end of the container."""
    cluster.apply(train_job("demo", COUNT, nodes=2))
    until(lambda: cluster.state("demo") in {"Running", "Complete"}, "the job runs")
    pod = cluster.list("pod")[0]["metadata"]["name"]
    text = until(lambda: cluster.kubectl("logs", "-f", pod, check=False).stdout, "the log begins")
    assert text == "".join(f"step {i}\n" for i in range(5))
    cluster.wait_for_condition("demo", "Complete")

    names = cluster.kubectl("get", "trainjob,jobset,job,pod", "-o", "name").stdout.split()
    assert names[:3] == ["trainjob.trainer.kubeflow.org/demo", "jobset.jobset.x-k8s.io/demo", "job.batch/demo-node-0"]
    assert [name.rpartition("-")[0] for name in sorted(names[3:])] == ["pod/demo-node-0-0", "pod/demo-node-0-1"]


def test_plugin(cluster: Cluster) -> None:
    """`kubectl trainer` is the `trainer` command, and kubectl completes the names of TrainJobs for it."""
    cluster.apply(train_job("with-plugin", "pass"))
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "KUBECONFIG": str(cluster.kubeconfig)}

    def kubectl(*words: str) -> list[str]:
        command = ["kubectl", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()

    in_namespace = ("-n", cluster.namespace)
    assert "with-plugin" in kubectl("trainer", "get", *in_namespace)
    assert kubectl("__complete", "trainer", "get", *in_namespace, "with-") == ["with-plugin", ":4"]
    assert kubectl("trainer", "--help")[:3] == ["Usage:", "kubectl", "trainer"]


def test_watch(cluster: Cluster) -> None:
    """`get -w` shows the job as it is, and each of its states to its end."""
    cluster.apply(train_job("demo", COUNT, suspend=True))
    cluster.wait_for_state("demo", "Suspended")
    with subprocess.Popen(cluster.command("get", "trainjob", "-w"), stdout=subprocess.PIPE, text=True) as watch:
        try:
            assert watch.stdout is not None
            states = [line.split()[1] for line in (watch.stdout.readline(), watch.stdout.readline())]
            cluster.suspend("demo", False)
            for line in watch.stdout:
                states.append(line.split()[1])
                if states[-1] == "Complete":
                    break
        finally:
            watch.terminate()
    assert states[:2] == ["STATE", "Suspended"]
    assert "Running" in states
    assert states[-1] == "Complete"


def test_apply_again(cluster: Cluster) -> None:
    """Applying the same file again changes nothing; a field that does not exist is refused with its path."""
    manifest = yaml.safe_dump(train_job("demo", "pass"))
    for change in ("created", "unchanged"):
        applied = cluster.kubectl("apply", "-f", "-", stdin=manifest).stdout
        assert applied == f"trainjob.trainer.kubeflow.org/demo {change}\n"

    refused = cluster.kubectl("apply", "-f", "-", stdin=manifest.replace("numNodes", "numNode"), check=False)
    assert refused.returncode == 1
    assert 'unknown field "spec.trainer.numNode"' in refused.stderr


def test_commands_in_containers(cluster: Cluster, tmp_path: Path) -> None:
    """`exec` runs a command in a container, with its input and its exit code, and `cp` copies in both directions."""
    cluster.apply(train_job("busy", "import time; time.sleep(600)"))
    cluster.wait_for_state("busy", "Running")
    pod = cluster.list("pod")[0]["metadata"]["name"]

    ran = cluster.kubectl("exec", pod, "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (ran.returncode, ran.stdout) == (7, "out\n")
    assert ran.stderr.splitlines() == ["err", "command terminated with exit code 7"]
    assert cluster.kubectl("exec", "-i", pod, "--", "wc", "-c", stdin="x" * 100_000).stdout.strip() == "100000"

    (tmp_path / "there").write_text("content")
    cluster.kubectl("cp", str(tmp_path / "there"), f"{pod}:there")
    cluster.kubectl("cp", f"{pod}:there", str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "content"
