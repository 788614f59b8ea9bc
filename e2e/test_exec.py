"""`trainer exec` and `trainer cp` on a cluster."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
from pathlib import Path

from e2e.cluster import Cluster, train_job
from e2e.kubectl import BIN

BUSY = "import time; open('made', 'w').write('content'); time.sleep(600)"


def running(cluster: Cluster) -> None:
    """A training on two nodes that runs until it is deleted."""
    cluster.apply(train_job("busy", BUSY, nodes=2))
    cluster.wait_for_state("busy", "Running")


def command(cluster: Cluster, *arguments: str) -> list[str]:
    return [str(BIN / "trainer"), arguments[0], "--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace,
            *arguments[1:]]  # fmt: skip


def execute(cluster: Cluster, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    words = command(cluster, "exec", *arguments)
    ended = subprocess.run(words, input=stdin, capture_output=True, timeout=110, check=False)
    return ended.returncode, ended.stdout, ended.stderr.decode()


def test_commands(cluster: Cluster) -> None:
    """A command has streams and exit code as if it ran here, on the node that is named."""
    running(cluster)
    script = "echo $JOB_COMPLETION_INDEX; echo err >&2; exit 7"
    assert execute(cluster, "busy", "--node", "1", "--", "sh", "-c", script) == (7, b"1\n", "err\n")
    data = os.urandom(1_000_000)
    assert execute(cluster, "busy", "-i", "--", "cat", stdin=data) == (0, data, "")

    cluster.kubectl("delete", "trainjob", "busy")
    cluster.apply(train_job("done", "pass"))
    cluster.wait_for_condition("done", "Complete")
    code, _, error = execute(cluster, "done", "--", "ls")
    assert (code, "TrainJob done has ended, and is Complete" in error) == (1, True)


def test_terminal(cluster: Cluster) -> None:
    """With -it a shell in the container has this terminal: what is typed, Ctrl-C too, goes to it."""
    running(cluster)
    words = command(cluster, "exec", "busy", "-it", "--", "sh")
    master, slave = pty.openpty()
    with subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave) as shell:
        os.close(slave)
        _type(master, b"PS1=ready:; echo an''swer\r", b"answer")
        # Only what has begun is interrupted for sure.
        _type(master, b"sh -c 'echo be''gun; exec sleep 600'\r", b"begun")
        _type(master, b"\x03", b"ready:")
        os.write(master, b"exit 9\r")
        assert shell.wait(60) == 9
    os.close(master)


def _type(master: int, keys: bytes, shown: bytes) -> None:
    """Type something, and read until it is shown."""
    os.write(master, keys)
    seen = b""
    while shown not in seen:
        assert select.select([master], [], [], 60)[0], seen
        seen += os.read(master, 4096)


def test_copies(cluster: Cluster, tmp_path: Path) -> None:
    """Files and folders go both ways; to a training that has ended there is no way."""
    running(cluster)

    def copy(source: str, target: str) -> str:
        ended = subprocess.run(
            command(cluster, "cp", source, target), capture_output=True, text=True, timeout=110, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert copy("busy:made", str(tmp_path / "made")) == f"copied node-0:made to {tmp_path}/made (1 file, 7 bytes)\n"
    assert (tmp_path / "made").read_text() == "content"
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "large").write_bytes(os.urandom(2_000_000))
    copy(str(tmp_path / "folder"), "busy:there")
    assert re.search(r"\(1 file, 1\.9 MiB\)", copy("busy:there", str(tmp_path / "back")))
    assert (tmp_path / "back" / "large").read_bytes() == (tmp_path / "folder" / "large").read_bytes()
