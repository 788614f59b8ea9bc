"""Which version of our kinds a cluster serves."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trainer.cli.operate.served_version import require_own_version
from trainer.kube.errors import ConfigurationError, KubeError, NotFoundError, TransportError

if TYPE_CHECKING:
    from trainer.kube.objects import Object

DOCUMENTS = Path(__file__).parents[3] / "docs"


@dataclass
class Discovery:
    """An API server that is asked for a group."""

    answer: list[str] | KubeError
    asked: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str) -> Object:
        """The group, or why it is not to be had."""
        self.asked.append(f"{method} {path}")
        if isinstance(self.answer, KubeError):
            raise self.answer
        group = path.removeprefix("/apis/")
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self.answer]
        return {"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": versions}


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(["v2alpha1"], id="ours"),
        pytest.param(["v1alpha1", "v2alpha1"], id="ours among others"),
        pytest.param([], id="none"),
        pytest.param(NotFoundError(404, "not found"), id="nothing is installed yet"),
        pytest.param(TransportError("connection refused"), id="no answer"),
    ],
)
async def test_start(answer: list[str] | KubeError) -> None:
    """The manager starts with its own version, and where it has to wait; it has asked once."""
    discovery = Discovery(answer)
    await require_own_version(discovery)
    assert discovery.asked == ["GET /apis/trainer.kubeflow.org"]


@pytest.mark.parametrize(
    ("versions", "named"),
    [
        pytest.param(["v1alpha1"], "as v1alpha1, and", id="the released Trainer"),
        pytest.param(["v1beta1", "v1alpha1"], "as v1alpha1, v1beta1, and", id="a later one"),
    ],
)
async def test_foreign_definitions(versions: list[str], named: str) -> None:
    """Another Trainer's CRDs stop the start with one line, which names what is served, the remedy and the page."""
    with pytest.raises(ConfigurationError, match=named) as raised:
        await require_own_version(Discovery(versions))
    message = str(raised.value)
    assert "\n" not in message
    assert "remove that Trainer and its CRDs" in message
    section = message.rpartition('under "')[2].removesuffix('"')
    assert f"### {section}\n" in (DOCUMENTS / "install.md").read_text()
