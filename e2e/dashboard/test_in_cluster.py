"""The dashboard of a cluster: who logs in with a token sees and may do what the token allows."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from e2e.cluster import Cluster
from e2e.dashboard.conftest import assert_accessible, on_each_screen, picture, show_on
from e2e.dashboard_server import running_dashboard_server
from e2e.identity import role, token_of
from e2e.installation import CONFIG
from e2e.progress_training import training

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="make e2e-dashboard installs Playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)  # a busy machine

SECRET = "0123456789abcdef" * 2
NAMESPACE, OTHER = "dashboard-team", "dashboard-others"
READ = [
    {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]},
]
CHANGE = [{"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["patch", "delete"]}]
CREATE = [{"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"], "verbs": ["create"]}]


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
        page.get_by_label("Token").fill(token_of(self.cluster, account, *rules))
        page.get_by_role("button", name="Log in").click()
        return page


@pytest.fixture(scope="module")
def team(session_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """TrainJobs of two namespaces, and a dashboard with the account and the rights of config/dashboard."""
    secret = tmp_path_factory.mktemp("secret") / "secret"
    secret.write_text(SECRET)
    servers = [
        running_dashboard_server(session_cluster, tmp_path_factory.mktemp("dashboard"), "--cluster-name", "e2e", *more)
        for more in ((), ("--proxy-secret-file", str(secret)))
    ]
    with (
        session_cluster.in_namespace(NAMESPACE) as own,
        session_cluster.in_namespace(OTHER) as others,
        servers[0] as server,
        servers[1] as behind_proxy,
    ):
        own.apply(
            training("ours", "write('hello from ours\\n'); say(currentStep=1, trainMetrics={'loss': 2}); live_on()")
        )
        others.apply(training("theirs", "live_on()", suspend=True))
        own.wait_for_state("ours", "Running")
        yield Team(own, server.address, behind_proxy.address)


def test_login(context: BrowserContext, team: Team) -> None:
    """Nobody sees anything before they have logged in; who has sees their namespace, until they log out."""
    page = context.new_page()
    page.goto(f"{team.address}/?q=o")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    picture(page, "login")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("wrong or has expired")
    token = token_of(team.cluster, "reader", *READ)
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


def test_drafts(context: BrowserContext, team: Team) -> None:
    """What somebody has typed is asked about before they log out, and is not there for whoever uses the tab next."""
    page = team.login(context, "writer", *READ, *CREATE, path=f"/new?namespace={NAMESPACE}")
    name = page.get_by_label("Name", exact=True)
    name.fill("mine")
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("dialog").get_by_role("button", name="Stay").click()
    expect(name).to_have_value("mine")
    other = token_of(team.cluster, "other-writer", *READ, *CREATE)
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.get_by_text("What you typed before is back.")).to_be_visible()
    page.evaluate("token => sessionStorage.setItem('typed', token)", other)
    page.reload()
    expect(page.get_by_text("dashboard-team:other-writer")).to_be_visible()
    expect(name).to_have_value("training-1")


def test_one_namespace(context: BrowserContext, team: Team) -> None:
    """Who may read one namespace has its pages with all that is on them, no buttons, and no other namespace."""
    page = team.login(context, "namespaced", *READ)
    page.get_by_role("link", name="ours", exact=True).click()
    expect(page.get_by_role("row", name="node-0")).to_contain_text("Running")
    expect(page.get_by_role("row").filter(has_text="loss")).to_be_visible()
    expect(page.get_by_role("button", name="Suspend")).to_have_count(0)
    page.get_by_role("link", name="Logs").click()
    expect(page.get_by_role("log")).to_contain_text("hello from ours")
    page.goto(f"{team.address}/jobs/{OTHER}/theirs")
    expect(page.get_by_role("alert").first).to_contain_text(f"you may not get TrainJobs in the namespace {OTHER}")


def test_changes(context: BrowserContext, team: Team) -> None:
    """Who may change TrainJobs does it by their own rights, which the API server checks."""
    page = team.login(context, "editor", *READ, *CHANGE, path=f"/jobs/{NAMESPACE}/ours")
    page.get_by_role("button", name="Suspend").click()
    expect(page.locator(".title .state")).to_have_text("Suspended")
    team.cluster.kubectl("delete", "rolebinding", "editor")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("alert").first).to_contain_text("forbidden")
    team.cluster.suspend("ours", False)


def test_expired_token(context: BrowserContext, team: Team) -> None:
    """A token that is not good any more leads to the login, and back to the same page."""
    page = team.login(context, "leaver", *READ, path=f"/jobs/{NAMESPACE}/ours")
    expect(page.get_by_role("heading", name=f"ours {NAMESPACE}")).to_be_visible()
    team.cluster.kubectl("delete", "serviceaccount", "leaver")
    # At once: the page asks by itself as well, and then the link is gone.
    page.evaluate("document.querySelector('a[href$=\"/yaml\"]')?.click()")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Token").fill(token_of(team.cluster, "successor", *READ))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name=f"ours {NAMESPACE}")).to_be_visible()


def test_proxy(team: Team) -> None:
    """Whom a proxy names has their own rights, once the dashboard may impersonate, and nobody without the secret."""
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "data-scientists"}
    team.cluster.apply(*role("proxied", subject, *READ))
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


@on_each_screen
def test_accessibility(context: BrowserContext, team: Team, scheme: str, width: int) -> None:
    """The login is accessible, and fits."""
    page = context.new_page()
    show_on(page, scheme, width)
    page.goto(team.address)
    expect(page.get_by_label("Token")).to_be_focused()
    assert_accessible(page)
