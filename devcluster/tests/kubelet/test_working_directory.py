"""Working directories of containers without mount namespaces."""

from __future__ import annotations

import pytest

from trainer_devcluster.kubelet.working_directory import SERVICE_ACCOUNT, unreachable_mount


@pytest.mark.parametrize(
    ("directory", "targets", "problem"),
    [
        pytest.param("/work", ["/work"], None, id="the volume"),
        pytest.param("/work", ["/work/a", "/work/b"], None, id="side by side"),
        pytest.param("/work", ["/work/a", str(SERVICE_ACCOUNT)], None, id="credentials do not count"),
        pytest.param("/work", ["/data"], "/data is not workingDir or below it", id="elsewhere"),
        pytest.param("/work", ["/work", "/work/a"], "/work has other mounts below it", id="below the volume"),
        pytest.param("/work", ["/work/a/b/c", "/work/a"], "/work/a has other mounts below it", id="nested"),
    ],
)
def test_unreachable_mount(directory: str, targets: list[str], problem: str | None) -> None:
    """A mount is refused that would need a link in another volume."""
    container = {"workingDir": directory, "volumeMounts": [{"name": "v", "mountPath": path} for path in targets]}
    found = unreachable_mount(container)
    assert found is None if problem is None else found is not None and found.startswith(problem)
