"""What launchers write before the lines of their processes."""

from __future__ import annotations

import pytest

from trainer.api.launcher_prefix import LauncherPrefix


@pytest.mark.parametrize(
    ("prefix", "ranks"),
    [
        pytest.param("", (), id="none"),
        pytest.param("[default0]:", (0,), id="torchrun"),
        pytest.param("[trainer-a.b12]:", (12,), id="torchrun, another role"),
        pytest.param("[rank3]: ", (3,), id="PyTorch"),
        pytest.param("[1,0]<stdout>:", (0,), id="Open MPI 4, horovodrun"),
        pytest.param("[1,12]<stderr>:", (12,), id="Open MPI, stderr"),
        pytest.param("[prterun-node-0-7@1,5]<stdout>: ", (5,), id="Open MPI 5"),
        pytest.param("[1,5][node-0:42]<stdout>: ", (5,), id="Open MPI, in detail"),
        pytest.param("Thu Jan  1 00:00:00 2026<stdout>:", (), id="Open MPI, time"),
        pytest.param("Thu Jan 11 00:00:00 2026[1,2]<stdout>:", (2,), id="Open MPI, time and rank"),
        pytest.param("[3] ", (3,), id="MPICH, Intel MPI"),
        pytest.param("[3]<stdout>:", (3,), id="horovodrun without MPI"),
        pytest.param("7: ", (7,), id="srun, flux"),
        pytest.param(" 07: ", (7,), id="srun, padded"),
        pytest.param("worker-0.team.svc: ", (), id="pdsh"),
        pytest.param("10.0.0.1: ", (), id="pdsh, address"),
        pytest.param("(pid=12) ", (), id="Ray"),
        pytest.param("\x1b[36m(RayTrainWorker pid=12, ip=10.0.0.1)\x1b[0m ", (), id="Ray, coloured"),
        pytest.param("\x1b[33mtrainer-1  | \x1b[0m", (), id="docker compose"),
        pytest.param("[1,1]<stdout>:[default0]:[rank8]: ", (1, 0, 8), id="one that another has started"),
        pytest.param("worker-1: [default0]:", (0,), id="host and rank"),
    ],
)
def test_prefixes(prefix: str, ranks: tuple[int, ...]) -> None:
    """Each is known with the rank that it tells, in texts and in bytes, without what the process has written."""
    found = LauncherPrefix.of(f"{prefix}[text]")
    assert (found.length, found.ranks) == (len(prefix.removesuffix("\x1b[0m").removesuffix("\x1b[0m ")), ranks)
    assert LauncherPrefix.of(f"{prefix}[text]".encode()) == found


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "ValueError: no data",
        "  rank      : 1 (local_rank: 0)",
        "error_file: <N/A>",
        "INFO:root:text",
        "2026-01-01 12:00:00,000 INFO text",
        "[2026-01-01 12:00:00] text",
        "45%|####     | 9/20",
        "(see pid=",
        "[rank1] text",
    ],
)
def test_ordinary_lines(line: str) -> None:
    """What programs write themselves is no prefix."""
    assert LauncherPrefix.of(line) == LauncherPrefix()


def test_depth() -> None:
    """A line of nothing but prefixes has few ranks."""
    assert LauncherPrefix.of("0: " * 1000).ranks == (0,) * 8
