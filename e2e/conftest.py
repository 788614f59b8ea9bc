"""Starts what the tests drive: a dev cluster, or the cluster of $E2E_KUBECONFIG, and the controller manager.

The manager runs on this machine with the configuration, the roles and the webhooks of config/, except for addresses.
What the variables of the environment mean is in README.md of this directory.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml

from e2e import audit, foreign, parts
from e2e.belongings import Belongings
from e2e.cluster import Cluster
from e2e.dev_cluster import dev_cluster
from e2e.identity import write_credentials
from e2e.installation import CONFIG, HOST, free_ports, roles, shipped_configuration, v1_roles, wait_for_trust, webhooks
from e2e.manager import InstalledManager, Manager, manager
from e2e.parts import Part

LAST = "test_rbac.py"
"""Looks back at the whole run."""
WEBHOOK_HOST = "E2E_WEBHOOK_HOST"
_PART = pytest.StashKey[Part]()
_LEFT_OUT = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """No test has been left out yet, and what tests start can be interrupted."""
    config.stash[_LEFT_OUT] = any("::" in argument for argument in config.args)
    config.stash[_PART] = Part()
    # Shells have what they start in the background ignore it, and programs leave that to all that they start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """-k, -m and others leave tests out."""
    if items:
        items[0].config.stash[_LEFT_OUT] = True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the files that may take longest first, so that no worker is left with one, and the last one at the end."""
    limits: Counter[Path] = Counter()
    for item in items:
        mark = item.get_closest_marker("timeout")
        limits[item.path] += mark.args[0] if mark else int(config.getini("timeout"))
    items.sort(key=lambda item: (item.path.name == LAST, -limits[item.path], item.path))
    if not config.stash[_LEFT_OUT]:
        config.stash[_PART].modules = {str(item.path) for item in items}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which tests did not do what they are for."""
    report = yield
    if not report.passed:
        item.config.stash[_PART].not_passed.append(f"{item.nodeid} was {report.outcome}")
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Leave what has run for later parts of this run."""
    session.config.stash[_PART].leave()


@pytest.fixture
def is_whole_run(request: pytest.FixtureRequest) -> bool:
    """Whether no test of this directory is left out, in this part or an earlier one."""
    files = {str(file) for file in Path(__file__).parent.rglob("test_*.py") if file.parent.name != "dashboard"}
    return files <= request.config.stash[_PART].with_earlier().modules


@pytest.fixture
def not_passed(request: pytest.FixtureRequest) -> list[str]:
    """Tests of this run that have failed or been skipped."""
    return request.config.stash[_PART].with_earlier().not_passed


@pytest.fixture(scope="session", autouse=True)
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have all dev clusters, whoever starts them, write one audit log."""
    with pytest.MonkeyPatch.context() as patch:
        directory = parts.directory() or tmp_path_factory.mktemp("audit")
        patch.setenv(audit.VARIABLE, str(directory / "audit.log"))
        yield


@pytest.fixture(scope="session")
def session_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with CRDs, runtimes and a running manager; its dev cluster, if any, lives as long as the session."""
    directory = tmp_path_factory.mktemp("cluster")
    named = os.environ.get("E2E_KUBECONFIG")
    with foreign_cluster(directory, Path(named)) if named else running_cluster(directory) as cluster:
        yield cluster


@contextmanager
def running_cluster(directory: Path, *options: str, serves_v1: bool = False) -> Iterator[Cluster]:
    """A dev cluster with CRDs, runtimes and a running manager, until it is left.

    Args:
        directory: where its files go.
        options: further options of `trainer cluster`.
        serves_v1: whether the manager serves PyTorchJobs and JAXJobs (config/v1).
    """
    with dev_cluster(directory, *options) as cluster, ExitStack() as stack:
        webhook, metrics, health = free_ports(3)
        cluster.configuration = shipped_configuration((webhook, metrics, health))
        _install(cluster, stack, serves_v1=serves_v1)
        yield cluster


@contextmanager
def foreign_cluster(directory: Path, kubeconfig: Path) -> Iterator[Cluster]:
    """Somebody's cluster with CRDs, runtimes and a running manager; in the end it is as it was."""
    with ExitStack() as stack:
        webhook, metrics, health = free_ports(3)
        cluster = Cluster(
            kubeconfig,
            directory / "manager.kubeconfig",
            is_local=False,
            pod_network="",
            manager=Manager([], directory / "manager.log"),
            configuration=shipped_configuration((webhook, metrics, health), os.environ.get(WEBHOOK_HOST, "")),
        )
        cluster.belongings = Belongings(run=f"run-{uuid.uuid4().hex[:8]}")
        if os.environ.get("E2E_INSTALLED"):
            foreign.refuse_unless_installed(cluster)
            cluster.manager, cluster.configuration = InstalledManager(), {}
            stack.callback(cluster.belongings.remove, cluster)
            write_credentials(cluster, cluster.manager_kubeconfig)
        else:
            foreign.refuse_unless_free(cluster)
            stack.callback(cluster.belongings.remove, cluster)
            _install(cluster, stack)
        yield cluster


def _install(cluster: Cluster, stack: ExitStack, *, serves_v1: bool = False) -> None:
    """Everything of config/, with the manager on this machine instead of its Deployment."""
    create = cluster.belongings.create
    create(cluster, *yaml.load_all((CONFIG / "crd/trainer.kubeflow.org.yaml").read_text(), yaml.CSafeLoader))
    cluster.kubectl("wait", "--for=condition=Established", "crd/trainjobs.trainer.kubeflow.org", "--timeout=30s")
    create(cluster, *roles(cluster))
    if serves_v1:
        create(cluster, *yaml.load_all((CONFIG / "v1/crd/kubeflow.org.yaml").read_text(), yaml.CSafeLoader))
        create(cluster, *v1_roles(cluster))
        cluster.configuration["controllers"] = {"v1": {"enabled": True}}
    write_credentials(cluster, cluster.manager_kubeconfig)
    cluster.manager = manager(cluster, cluster.manager_kubeconfig.parent)
    stack.callback(cluster.manager.stop)
    section = cluster.configuration["webhook"]
    if cluster.has_webhooks:
        host = next((each for each in section["hosts"] if each != HOST), HOST)
        for room in ("webhook", *(["v1"] if serves_v1 else [])):
            create(cluster, *webhooks(cluster, f"https://{host}:{section['port']}", room))
    cluster.manager.start(ready="started manager")
    if cluster.has_webhooks:
        wait_for_trust(cluster)
    runtimes = cluster.kubectl("kustomize", str(CONFIG / "runtimes")).stdout
    create(cluster, *yaml.load_all(runtimes, yaml.CSafeLoader))


@pytest.fixture
def cluster(session_cluster: Cluster) -> Iterator[Cluster]:
    """An empty namespace of the cluster, which is deleted afterwards."""
    with session_cluster.in_namespace() as own:
        yield own
