"""kubectl, run in one namespace of a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

BIN = Path(sys.executable).parent
"""Where `trainer` and `kubectl` of the environment under test are."""


@dataclass(slots=True)
class Kubectl:
    """A kubeconfig and a namespace."""

    kubeconfig: Path
    """Of an administrator."""
    namespace: str = field(default="", kw_only=True)

    def kubectl(self, *arguments: str, check: bool = True, stdin: str | None = None) -> CompletedProcess[str]:
        """Run kubectl to its end."""
        result = subprocess.run(
            self.command(*arguments), input=stdin, capture_output=True, text=True, timeout=90, check=False
        )
        if check and result.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)} exited with {result.returncode}:\n{result.stderr}")
        return result

    def command(self, *arguments: str) -> list[str]:
        """The command line of a kubectl that talks to this namespace."""
        namespace = ["--namespace", self.namespace] if self.namespace else []
        return [str(BIN / "kubectl"), "--kubeconfig", str(self.kubeconfig), *namespace, *arguments]

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """One object, or None when there is none."""
        text = self.kubectl("get", kind, name, "-o", "json", "--ignore-not-found").stdout
        return json.loads(text) if text.strip() else None

    def list(self, kind: str) -> list[dict[str, Any]]:
        """All objects of the namespace."""
        items: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, "-o", "json").stdout)["items"]
        return items
