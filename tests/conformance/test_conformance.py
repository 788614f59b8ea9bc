"""The dev cluster answers and acts as recorded from a real Kubernetes v1.36 with JobSet."""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
READY = re.compile(r"cluster ready: (?P<url>https://\S+) kubeconfig=(?P<kubeconfig>.+)")
START_SECONDS = 60
SHARED_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.conformance.example.com"

NOT_YET: dict[str, str] = {}
"""Scenarios and lifecycles that do not pass, and why."""

ATTEMPTS = {"server-side-apply": 3}
"""Managed fields are ordered by time in whole seconds, so this scenario can differ when a second ends on the way."""


@dataclass(frozen=True)
class Cluster:
    """A running dev cluster without a kubelet."""

    url: str
    token: str
    context: ssl.SSLContext

    def request(self, method: str, path: str) -> int:
        """The HTTP status of a request without a body."""
        headers = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(self.url + path, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    arguments = ["--no-kubelet", "--data-dir", str(directory / "data"), "--kubeconfig", str(directory / "kubeconfig")]
    with (directory / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "trainer_devcluster", *arguments], stdout=subprocess.PIPE, stderr=errors, text=True
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        match = READY.match(line)
        assert match, f"no ready line but {line!r}: {(directory / 'stderr').read_text()[-2000:]}"
        kubeconfig: Any = yaml.safe_load(Path(match["kubeconfig"].strip()).read_text())
        authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"])
        context = ssl.create_default_context(cadata=authority.decode())
        yield Cluster(match["url"], kubeconfig["users"][0]["user"]["token"], context)
    finally:
        process.terminate()
        assert process.wait(timeout=20) == 0
        process.stdout.close() if process.stdout else None


def cases(folder: str) -> list[Any]:
    """One case per recorded file, those that do not pass yet as strict expected failures."""
    found = []
    for path in sorted((HERE / folder).glob("*.json")):
        reason = NOT_YET.get(path.stem)
        marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
        found.append(pytest.param(path, id=path.stem, marks=marks))
    return found


def run(runner: str, path: Path, cluster: Cluster, directory: Path, *options: str) -> str:
    """Run one recorded file alone (the runners' --only matches parts of names); returns what differs, or ""."""
    alone = directory / path.name
    alone.write_bytes(path.read_bytes())
    command: list[str | Path] = [sys.executable, HERE / runner, "check", "--url", cluster.url]
    command.append(f"--token={cluster.token}")  # in one word: one token of 64 begins with a dash
    result = subprocess.run([*command, *options, directory], check=False, capture_output=True, text=True)
    return result.stdout + result.stderr if result.returncode else ""


def delete_and_wait(cluster: Cluster, path: str) -> None:
    """Delete an object and wait until it is gone."""
    deadline = time.monotonic() + START_SECONDS
    cluster.request("DELETE", path)
    while cluster.request("GET", path) != 404:
        assert time.monotonic() < deadline, f"{path} is still there"


@pytest.mark.parametrize("path", cases("scenarios"))
def test_answers_as_recorded(path: Path, cluster: Cluster, tmp_path: Path) -> None:
    """Each answer, its message included, equals the recorded one but for times, uids and versions."""
    attempts = ATTEMPTS.get(path.stem, 1)
    while True:
        # Every scenario makes the same definition; without the last one's they may run in any order.
        delete_and_wait(cluster, SHARED_CRD)
        difference = run("conformance.py", path, cluster, tmp_path, "--messages")
        attempts -= 1
        if not difference or not attempts:
            break
        delete_and_wait(cluster, "/api/v1/namespaces/cf-apply")
    assert not difference, difference


@pytest.mark.parametrize("path", cases("lifecycles"))
def test_acts_as_recorded(path: Path, cluster: Cluster, tmp_path: Path) -> None:
    """After each step the objects that the controllers have made equal the recorded ones."""
    difference = run("lifecycle.py", path, cluster, tmp_path, "--settle", "0.8")
    assert not difference, difference


def test_expected_failures_exist() -> None:
    """A name in the list of expected failures is that of a recorded file."""
    names = {path.stem for folder in ("scenarios", "lifecycles") for path in (HERE / folder).glob("*.json")}
    assert set(NOT_YET) <= names
    for path in (HERE / "scenarios").glob("*.json"):
        assert json.loads(path.read_text())["name"] == path.stem
