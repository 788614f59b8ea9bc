from __future__ import annotations

from trainer_devcluster.controllers.garbage_collector.recent_uids import RecentUids


def test_the_oldest_uid_is_forgotten() -> None:
    """The memory is bounded."""
    uids = RecentUids(limit=2)
    for uid in ("a", "b", "c"):
        uids.add(uid)
    assert [uid in uids for uid in ("a", "b", "c")] == [False, True, True]
