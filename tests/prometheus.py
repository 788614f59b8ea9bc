"""A real Prometheus on the loopback interface, for tests of what alerts and dashboards make of our metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from trainer.kube.metrics import Metrics
from trainer.kube.metrics.exposition import Exposition
from trainer.kube.objects import Object

PROMETHEUS = shutil.which("prometheus")
"""The program on PATH (the Debian package `prometheus` has it), None where it is not installed."""

needs_prometheus = pytest.mark.skipif(
    PROMETHEUS is None, reason="prometheus is not installed: apt-get install prometheus"
)
"""Mark of the tests that start `Prometheus`."""

_ADDRESS = re.compile(r"TLS is disabled.*address=(127\.0\.0\.1:[1-9]\d*)")
_DEADLINE = 60.0

_T = TypeVar("_T")


class Prometheus:
    """Scrapes one target as job `trainer`, every second.

    A scrape that takes longer, on a machine that is busy, ends the series until the next one: poll for what shall be
    there.

    Args:
        address: where it listens.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    @classmethod
    @contextmanager
    def scraping(cls, target: str, groups: list[Object], directory: Path) -> Iterator[Prometheus]:
        """Run it with these groups of rules, and with its files in a directory."""
        assert PROMETHEUS is not None, "mark the test with needs_prometheus"
        job = {"job_name": "trainer", "honor_labels": True, "static_configs": [{"targets": [target]}]}
        settings = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [job],
        }
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(settings))
        (directory / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
        log = directory / "prometheus.log"
        command = [
            PROMETHEUS,
            f"--config.file={directory / 'prometheus.yaml'}",
            f"--storage.tsdb.path={directory / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        ]
        with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
            try:
                found = poll(lambda: _ADDRESS.search(log.read_text()), f"the address of Prometheus in {log}")
                running = cls(found.group(1))
                poll(running._is_ready, "Prometheus is ready")
                yield running
            finally:
                process.terminate()

    def query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of what an expression gives at this moment."""
        answer = self._get("query", query=expression)
        if answer["resultType"] == "scalar":
            return [({}, float(answer["result"][1]))]
        return [(each["metric"], float(each["value"][1])) for each in answer["result"]]

    def firing(self) -> list[tuple[str, str]]:
        """Name and severity of the alerts that fire."""
        alerts = self._get("alerts")["alerts"]
        return sorted(
            (alert["labels"]["alertname"], alert["labels"]["severity"])
            for alert in alerts
            if alert["state"] == "firing"
        )

    def broken_rules(self) -> list[tuple[str, str]]:
        """Rules that could not be evaluated, or have not been yet, each with its error."""
        return [
            (rule["name"], rule.get("lastError", rule["health"]))
            for group in self._get("rules")["groups"]
            for rule in group["rules"]
            if rule["health"] != "ok"
        ]

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://{self._address}/-/ready", timeout=30):
                return True
        except HTTPError as error:
            error.close()
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        with urlopen(f"http://{self._address}/api/v1/{path}?{urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]


@contextmanager
def exposed(metrics: Metrics) -> Iterator[str]:
    """The address where `/metrics` has the present values."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name is what the base class calls
            text, content_type = Exposition(metrics).render(self.headers.get("Accept", ""))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the base class
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def poll(ask: Callable[[], _T | None], what: str) -> _T:
    """The first answer that is something, asked for until a deadline."""
    deadline = time.monotonic() + _DEADLINE
    while time.monotonic() < deadline:
        if answer := ask():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {_DEADLINE:.0f} s")
