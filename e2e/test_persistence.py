"""Objects outlive the process of the dev cluster, however it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from e2e.raw_server import RawServer, running
from e2e.waiting import until

pytestmark = [
    pytest.mark.skipif("E2E_KUBECONFIG" in os.environ, reason="kills the cluster"),
    pytest.mark.timeout(180),
]
PATH = "/api/v1/namespaces/default/configmaps"
WRITERS = 4
ENOUGH = 100
"""Objects until the server is killed: more than it takes until each client has created, changed and deleted some."""


def write_until_it_dies(server: RawServer, writer: int, acknowledged: dict[str, str]) -> None:
    """Create, change and delete objects one after the other, and keep what was answered."""
    number = 0
    with suppress(OSError, http.client.HTTPException, ValueError):
        while True:
            number += 1
            name = f"w{writer}-{number}"
            code, created = server.request("POST", PATH, {"metadata": {"name": name}, "data": {"x": "1"}})
            assert code == 201, created
            acknowledged[name] = created["metadata"]["resourceVersion"]
            if number % 3 == 0:
                created["data"]["x"] = "2"
                code, changed = server.request("PUT", f"{PATH}/{name}", created)
                assert code == 200, changed
                acknowledged[name] = changed["metadata"]["resourceVersion"]
            if number % 5 == 0:
                # Nobody knows what a request without an answer has done.
                version = acknowledged.pop(name)
                code, _ = server.request("DELETE", f"{PATH}/{name}")
                assert code == 200, version
                acknowledged[name] = ""


def wait_for_writes(acknowledged: dict[str, str]) -> None:
    """Wait until the clients have written enough."""
    enough = len(acknowledged) + ENOUGH
    until(lambda: len(acknowledged) >= enough, f"{ENOUGH} more objects are written")


def test_no_acknowledged_write_is_lost(tmp_path: Path) -> None:
    """After SIGKILL amid writes of several clients everything that was answered is there, three times over."""
    acknowledged: dict[str, str] = {}
    with running(tmp_path) as server:
        for lifetime in range(3):
            threads = [
                threading.Thread(target=write_until_it_dies, args=(server, 10 * lifetime + writer, acknowledged))
                for writer in range(WRITERS)
            ]
            for thread in threads:
                thread.start()
            wait_for_writes(acknowledged)
            server.process.send(signal.SIGKILL)
            server.process.wait()
            for thread in threads:
                thread.join()
            server.start()
            code, found = server.request("GET", PATH)
            assert code == 200
            versions = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}
            for name, version in acknowledged.items():
                if version:
                    assert int(versions[name]) >= int(version), name
                else:
                    assert name not in versions
            newest = max(int(version or 0) for version in acknowledged.values())
            assert int(found["metadata"]["resourceVersion"]) >= newest
            # A watch of the past goes on over the end of the process.
            oldest = min(int(version) for version in acknowledged.values() if version)
            _, events = server.request("GET", f"{PATH}?watch=1&timeoutSeconds=1&resourceVersion={oldest}")
            types = {json.loads(line)["type"] for line in events.splitlines()}
            assert {"ADDED", "MODIFIED", "DELETED"} <= types <= {"ADDED", "MODIFIED", "DELETED"}


def test_a_damaged_journal_is_reported(tmp_path: Path) -> None:
    """A cluster whose files were damaged does not start, and says in one line which file, why, and what to do."""
    with running(tmp_path) as server:
        for name in "abc":
            server.request("POST", PATH, {"metadata": {"name": name}})
    journal = tmp_path / "data" / "objects.sqlite"
    journal.write_bytes(b"?" + journal.read_bytes()[1:])
    with pytest.raises(AssertionError, match="cannot be used") as caught:
        server.start()
    complaint = [line for line in str(caught.value).splitlines() if line.startswith("trainer cluster: ")]
    assert len(complaint) == 1
    assert str(journal) in complaint[0]
    assert "is damaged" in complaint[0]
    assert "to start with an empty cluster" in complaint[0]
