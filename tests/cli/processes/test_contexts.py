"""The kubeconfig of the dev clusters of a user."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from trainer.cli.errors import CommandError
from trainer.cli.processes.contexts import Contexts
from trainer.cli.processes.state_directory import StateDirectory
from trainer_devcluster.apiserver.server import kubeconfig


@pytest.fixture
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Contexts:
    """Those of a user who has none yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Contexts.of_user()


def started(name: str, url: str = "https://127.0.0.1:1234") -> StateDirectory:
    """A cluster that has started."""
    state = StateDirectory.of_user(name)
    state.create()
    state.kubeconfig.write_text(kubeconfig(url, f"token of {name}", "authority"))
    return state


def test_two_clusters(contexts: Contexts) -> None:
    """Each has its context with its own credentials; the one that was added last is the current one."""
    assert (contexts.current, contexts.names()) == ("", [])
    dev, b = started("dev"), started("b", "https://127.0.0.1:4321")
    assert contexts.add(dev) == ""
    assert contexts.add(b) == "trainer-dev"

    assert (contexts.current, contexts.names()) == ("trainer-b", ["trainer-dev", "trainer-b"])
    assert [contexts.cluster_of(name) for name in ("trainer-dev", "trainer-b", "trainer-c")] == ["dev", "b", None]
    assert contexts.current_cluster == "b"
    assert contexts.address_of(b) == "https://127.0.0.1:4321"
    assert contexts.path.stat().st_mode & 0o777 == 0o600
    document = yaml.safe_load(contexts.path.read_text())
    assert {each["name"]: each["user"]["token"] for each in document["users"]} == {
        "trainer-dev": "token of dev",
        "trainer-b": "token of b",
    }
    assert document["contexts"][1]["context"] == {"cluster": "trainer-b", "user": "trainer-b", "namespace": "default"}


def test_added_again(contexts: Contexts) -> None:
    """A cluster that starts again gets its address; what a user has done by kubectl stays."""
    dev = started("dev")
    contexts.add(dev)
    document = yaml.safe_load(contexts.path.read_text())
    document["contexts"][0]["context"]["namespace"] = "vision"
    document["contexts"].append({"name": "mine", "context": {"cluster": "trainer-dev", "user": "trainer-dev"}})
    contexts.path.write_text(yaml.safe_dump(document))
    contexts.use("mine")
    assert contexts.cluster_of("mine") == "dev"

    contexts.add(started("dev", "https://127.0.0.1:9999"))

    assert contexts.address_of(dev) == "https://127.0.0.1:9999"
    assert contexts.current == "trainer-dev"
    assert contexts.names() == ["trainer-dev", "mine"]
    assert yaml.safe_load(contexts.path.read_text())["contexts"][0]["context"]["namespace"] == "vision"
    written = contexts.path.stat()
    contexts.add(dev)
    assert contexts.path.stat().st_ino == written.st_ino, "it was written without a change"


@pytest.mark.parametrize("cluster", ["trainer-EU_1", "trainer-../../x", "trainer-", "eu"])
def test_contexts_of_other_tools(contexts: Contexts, cluster: str) -> None:
    """A cluster whose name no dev cluster can have is somebody else's, and no command stumbles over it."""
    StateDirectory.of_user().create()
    entry = {"name": "eu", "context": {"cluster": cluster, "user": "me"}}
    contexts.path.write_text(yaml.safe_dump({"contexts": [entry], "current-context": "eu"}))

    assert contexts.current_cluster is None


def test_removed(contexts: Contexts) -> None:
    """A cluster that is deleted leaves nothing, and no other one is touched."""
    dev, b = started("dev"), started("b")
    contexts.remove(dev)
    assert not contexts.path.exists()
    contexts.add(dev)
    before = contexts.path.read_text()
    contexts.add(b)
    contexts.remove(b)
    assert (contexts.current, contexts.names()) == ("", ["trainer-dev"])
    contexts.use("trainer-dev")
    assert yaml.safe_load(contexts.path.read_text()) == yaml.safe_load(before)


def test_of_an_earlier_version(contexts: Contexts) -> None:
    """The cluster whose kubeconfig the file was keeps its address and its credentials."""
    former = kubeconfig("https://127.0.0.1:1234", "secret", "authority")
    contexts.path.parent.mkdir()
    contexts.path.write_text(former)
    dev = StateDirectory.of_user()

    contexts.take_over(StateDirectory.of_user("b"))
    contexts.take_over(dev)

    assert dev.kubeconfig.read_text() == former
    assert not StateDirectory.of_user("b").kubeconfig.exists()
    started("dev", "https://127.0.0.1:9999")
    contexts.take_over(dev)
    assert "9999" in dev.kubeconfig.read_text()
    contexts.take_over(dev, is_of_former=True)
    assert dev.kubeconfig.read_text() == former, "0.1 has started it since, and has written no other file"


@pytest.mark.parametrize(
    "text", ["{", "- a", "contexts: 3", "contexts: [3]", "contexts: [{name: a}]", "clusters: [{cluster: {}}]"]
)
def test_no_kubeconfig(contexts: Contexts, text: str) -> None:
    """A file that somebody has damaged is named, with the remedy."""
    contexts.path.parent.mkdir()
    contexts.path.write_text(text)
    with pytest.raises(CommandError, match=r"cannot use .*kubeconfig.*delete it"):
        contexts.names()
