"""The list of the dev clusters."""

from __future__ import annotations

from trainer.cli.local.cluster_list import ListedCluster, cluster_table


def test_table() -> None:
    """There is a line for each cluster, the current one with an asterisk; what is not known is left out."""
    clusters = [
        ListedCluster("dev", False, "running", "trainer-dev", "https://127.0.0.1:1234", training=3, size=2_400_000),
        ListedCluster("b", True, "stopped", "trainer-b", "https://127.0.0.1:4321", size=999_400_000_000),
        ListedCluster("c", False, "starting", "trainer-c", size=0),
    ]
    assert cluster_table(clusters) == [
        "   NAME  STATE     CONTEXT      ADDRESS                 TRAINING  SIZE",
        "   dev   running   trainer-dev  https://127.0.0.1:1234  3         2.3 MiB",
        "*  b     stopped   trainer-b    https://127.0.0.1:4321            930.8 GiB",
        "   c     starting  trainer-c                                      0 bytes",
    ]
