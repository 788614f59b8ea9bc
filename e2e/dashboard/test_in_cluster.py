"""The dashboard of a cluster: who logs in with a token sees and may do what the token allows."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import Cluster
from e2e.dashboard.conftest import AXE, needs_axe, picture
from e2e.identity import write_credentials
from e2e.installation import CONFIG
from e2e.kubectl import BIN
from e2e.processes import Process
from e2e.progress_training import training

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

GROUP = "rbac.authorization.k8s.io"
SECRET = "0123456789abcdef" * 2
NAMESPACE, OTHER = "dashboard-team", "dashboard-others"
ACCOUNT, ACCOUNT_NAMESPACE = "trainer-dashboard", "trainer-system"
READ = [
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
]
CHANGE = [{"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["patch", "delete"]}]


@dataclass(frozen=True, slots=True)
class Team:
    """A namespace with TrainJobs, and the dashboard that shows it."""

    cluster: Cluster
    """Whose kubectl works in the namespace of the team."""
    address: str
    behind_proxy: str
    """Address of a dashboard that believes a proxy with the secret."""

    def login(self, context: BrowserContext, account: str, *rules: dict[str, Any], path: str = "/") -> Page:
        """The page as an account sees it that has these rights in the namespace of the team."""
        page = context.new_page()
        page.goto(f"{self.address}{path}")
        page.get_by_label("Token").fill(self.token(account, *rules))
        page.get_by_role("button", name="Log in").click()
        return page

    def token(self, account: str, *rules: dict[str, Any]) -> str:
        """The token of a new account with these rights in the namespace of the team."""
        self.cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}})
        if rules:
            role = {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": account}, "rules": list(rules)}
            subject = {"kind": "ServiceAccount", "name": account, "namespace": self.cluster.namespace}
            reference = {"apiGroup": GROUP, "kind": "Role", "name": account}
            binding = role | {"kind": "RoleBinding", "roleRef": reference, "subjects": [subject]}
            del binding["rules"]
            self.cluster.apply(role, binding)
        return self.cluster.kubectl("create", "token", account).stdout.strip()


@pytest.fixture(scope="module")
def team(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """TrainJobs of two namespaces, and a dashboard with the account and the rights of config/dashboard."""
    directory = tmp_path_factory.mktemp("dashboard")
    for name in (NAMESPACE, OTHER):
        session_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    session_cluster.kubectl("create", "namespace", ACCOUNT_NAMESPACE, check=False)
    for file in ("service_account", "role", "role_binding"):
        path = CONFIG / "dashboard" / f"{file}.yaml"
        session_cluster.kubectl("apply", "--server-side", "-n", ACCOUNT_NAMESPACE, "-f", str(path))
    own = replace(session_cluster, namespace=NAMESPACE)
    own.apply(training("ours", "write('hello from ours\\n'); say(currentStep=1, trainMetrics={'loss': 2}); live_on()"))
    replace(session_cluster, namespace=OTHER).apply(training("theirs", "live_on()", suspend=True))
    own.wait_for_state("ours", "Running")
    (directory / "secret").write_text(SECRET)
    kubeconfig = directory / "kubeconfig"
    write_credentials(session_cluster, kubeconfig, ACCOUNT, ACCOUNT_NAMESPACE)
    options = ["--plain-http", "--host", "127.0.0.1", "--port", "0", "--health-port", "0", "--cluster-name", "e2e"]
    command = [str(BIN / "trainer"), "dashboard-server", *options, "--kubeconfig", str(kubeconfig)]
    process = Process(command, directory / "dashboard.log")
    behind_proxy = Process([*command, "--proxy-secret-file", str(directory / "secret")], directory / "proxied.log")
    yield Team(own, _address(process), _address(behind_proxy))
    for each in (process, behind_proxy):
        each.stop()
    for file in ("role_binding", "role", "service_account"):
        path = CONFIG / "dashboard" / f"{file}.yaml"
        session_cluster.kubectl("delete", "-n", ACCOUNT_NAMESPACE, "--ignore-not-found", "-f", str(path))
    for name in (NAMESPACE, OTHER):
        session_cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--timeout=60s")


def _address(process: Process) -> str:
    process.start(ready='"server": "dashboard"')
    (line,) = (each for each in process.output().splitlines() if '"server": "dashboard"' in each)
    return f"http://{json.loads(line)['address']}"


def test_login(context: BrowserContext, team: Team) -> None:
    """Nobody sees anything before they have logged in; who has sees their namespace, until they log out."""
    page = context.new_page()
    page.goto(f"{team.address}/?q=o")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    picture(page, "login")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong or has expired")
    token = team.token("reader", *READ)
    page.get_by_label("Token").fill(token)
    page.get_by_label("Token").press("Enter")
    expect(page.get_by_role("status")).to_have_text("1 of 1 TrainJobs")
    expect(page.get_by_text("system:serviceaccount:dashboard-team:reader")).to_be_visible()
    assert token not in page.content()
    page.reload()
    expect(page.get_by_role("link", name="ours", exact=True)).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_one_namespace(context: BrowserContext, team: Team) -> None:
    """Who may read one namespace has its pages with all that is on them, no buttons, and no other namespace."""
    page = team.login(context, "namespaced", *READ)
    page.get_by_role("link", name="ours", exact=True).click()
    expect(page.get_by_role("row", name="node-0")).to_contain_text("Running")
    expect(page.get_by_role("figure").filter(has_text="loss")).to_be_visible()
    expect(page.get_by_role("button", name="Suspend")).to_have_count(0)
    page.get_by_role("link", name="Logs").click()
    expect(page.get_by_role("log")).to_contain_text("hello from ours")
    page.goto(f"{team.address}/jobs/{OTHER}/theirs")
    expect(page.get_by_role("alert").first).to_contain_text(f"you may not get TrainJobs in the namespace {OTHER}")


def test_runtimes_of_one_namespace(context: BrowserContext, team: Team) -> None:
    """Who may list runtimes in one namespace sees those, and what is left out."""
    runtime = team.cluster.get("clustertrainingruntime", "plain")
    assert runtime is not None
    own = {key: runtime[key] for key in ("apiVersion", "spec")} | {"kind": "TrainingRuntime"}
    for namespace in (NAMESPACE, OTHER):
        metadata = {"name": f"runtime-of-{namespace}", "namespace": namespace}
        replace(team.cluster, namespace=namespace).apply(own | {"metadata": metadata})
    rule = {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainingruntimes"], "verbs": ["get", "list"]}
    page = team.login(context, "runtime-reader", *READ, rule, path="/runtimes")
    expect(page.get_by_role("link", name=f"runtime-of-{NAMESPACE}")).to_be_visible()
    expect(page.get_by_role("link", name=f"runtime-of-{OTHER}")).to_have_count(0)
    expect(page.get_by_text("you may not list them in all")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("clustertrainingruntimes cannot be listed")


def test_without_rights(context: BrowserContext, team: Team) -> None:
    """Who has a token and no rights sees no TrainJob."""
    page = team.login(context, "nobody")
    expect(page.get_by_text("system:serviceaccount:dashboard-team:nobody")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("0 of 0 TrainJobs")


def test_changes(context: BrowserContext, team: Team) -> None:
    """Who may change TrainJobs does it by their own rights, which the API server checks."""
    page = team.login(context, "editor", *READ, *CHANGE, path=f"/jobs/{NAMESPACE}/ours")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator(".title .state")).to_have_text("Suspended")
    team.cluster.kubectl("delete", "rolebinding", "editor")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert").first).to_contain_text("forbidden")
    team.cluster.kubectl("patch", "trainjob", "ours", "--type=merge", "-p", '{"spec": {"suspend": false}}')


def test_expired_token(context: BrowserContext, team: Team) -> None:
    """A token that is not good any more leads to the login, and back to the same page."""
    page = team.login(context, "leaver", *READ, path=f"/jobs/{NAMESPACE}/ours")
    expect(page.get_by_role("heading", name=f"ours {NAMESPACE}")).to_be_visible()
    team.cluster.kubectl("delete", "serviceaccount", "leaver")
    # At once: the page asks by itself as well, and then the link is gone.
    page.evaluate("document.querySelector('a[href$=\"/yaml\"]')?.click()")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(team.token("successor", *READ))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name=f"ours {NAMESPACE}")).to_be_visible()


def test_proxy(team: Team) -> None:
    """Whom a proxy names has their own rights, once the dashboard may impersonate, and nobody without the secret."""
    reference = {"apiGroup": GROUP, "kind": "Role", "name": "proxied"}
    role = {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": "proxied"}, "rules": READ}
    subjects = [{"apiGroup": GROUP, "kind": "Group", "name": "data-scientists"}]
    binding = {**role, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects}
    del binding["rules"]
    team.cluster.apply(role, binding)
    manifest = ["-f", str(CONFIG / "dashboard-impersonation" / "role.yaml")]
    manifest += ["-f", str(CONFIG / "dashboard-impersonation" / "role_binding.yaml")]
    ours, theirs = f"/api/trainjobs/{NAMESPACE}/ours/yaml", f"/api/trainjobs/{OTHER}/theirs/yaml"
    headers = {
        "X-Remote-Secret": SECRET,
        "X-Remote-User": "jane",
        "X-Remote-Group": "data-scientists",
        "X-Requested-With": "trainer-dashboard",
    }
    try:
        assert status(f"{team.behind_proxy}{ours}", headers) == 403
        team.cluster.kubectl("apply", "--server-side", *manifest)
        assert status(f"{team.behind_proxy}{ours}", headers) == 200
        assert status(f"{team.behind_proxy}{theirs}", headers) == 403
        assert status(f"{team.behind_proxy}{ours}", headers | {"X-Remote-Group": "others"}) == 403
        assert status(f"{team.behind_proxy}{ours}", headers | {"X-Remote-Secret": "guessed"}) == 401
        assert status(f"{team.address}{ours}", headers) == 401
    finally:
        team.cluster.kubectl("delete", "--ignore-not-found", *manifest)


def status(url: str, headers: dict[str, str]) -> int:
    """Of the answer to a request with these headers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_accessibility(context: BrowserContext, team: Team, scheme: str, width: int) -> None:
    """The login is accessible, and fits."""
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(team.address)
    expect(page.get_by_label("Token")).to_be_focused()
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})")
    assert [each["id"] for each in found["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_namespace_that_goes(context: BrowserContext, team: Team) -> None:
    """The TrainJobs of a namespace that is deleted go from the pages of its users; it is the last test."""
    page = team.login(context, "last", *READ)
    expect(page.get_by_role("link", name="ours", exact=True)).to_be_visible()
    team.cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")
    expect(page.get_by_role("link", name="ours", exact=True)).to_have_count(0)
