"""What the manager may do, compared with what it has done: runs after all others, and looks at their audit log."""

from __future__ import annotations

import os

import pytest

from e2e import audit
from e2e.cluster import Cluster
from e2e.installation import roles
from e2e.waiting import until

WITHOUT_REQUEST = {f"update {kind}/finalizers.trainer.kubeflow.org" for kind in ("optimizationjobs", "trainjobs")}
"""What the API server asks for when an owner reference blocks the deletion of its owner, beside the request itself."""


@pytest.fixture(scope="module")
def requests(session_cluster: Cluster) -> set[audit.Request]:
    """Every kind of request that the manager has made, in whatever cluster."""
    log = audit.log_of_run()
    if log is None:
        pytest.skip("nobody has said where this cluster has its audit log: E2E_AUDIT_LOG")
    if "E2E_KUBECONFIG" not in os.environ:
        # Watches are audited when they end.
        session_cluster.manager.stop()
        until(lambda: any(request.verb == "watch" for request in audit.requests_of_manager(log)), "watches have ended")
    return set(audit.requests_of_manager(log))


def test_nothing_is_refused(requests: set[audit.Request]) -> None:
    """The roles allow everything that the manager has asked for."""
    assert requests
    assert [request for request in requests if request.is_refused] == []


def test_nothing_is_granted_in_vain(
    session_cluster: Cluster, requests: set[audit.Request], is_whole_run: bool, not_passed: list[str]
) -> None:
    """Each verb of each rule has been used for each of its resources."""
    if "E2E_KUBECONFIG" in os.environ:
        pytest.skip("what is skipped on this cluster uses some rights that nothing else does")
    if not is_whole_run:
        pytest.skip("only some of the tests have run, and others use what these do not")
    granted = audit.grants_of([obj for obj in roles(session_cluster) if obj["kind"] in {"Role", "ClusterRole"}])
    unused = {str(grant) for grant in granted if not any(map(grant.allows, requests))}
    assert unused == WITHOUT_REQUEST, "\n".join(["what these would have used cannot be known:", *not_passed])
