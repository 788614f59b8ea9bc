"""Why a TrainJob does not run: from a snapshot of objects to its causes, without a request.

`snapshot` holds what was read, `needs` says what else to read, and `walk` goes from the TrainJob down to what holds it.
What keeps pods from running comes from the plugin `jobset`, which also feeds the conditions Pending and Restarting; the
other modules add what only the user may read, such as nodes, or what a condition has no room for.
"""

from __future__ import annotations

from trainer.explain.cause import Cause, Explanation, Subject, Unread, Verdict, headline, words_of
from trainer.explain.needs import Needs, needs_of
from trainer.explain.snapshot import QueuePosition, Snapshot
from trainer.explain.walk import explain

__all__ = [
    "Cause",
    "Explanation",
    "Needs",
    "QueuePosition",
    "Snapshot",
    "Subject",
    "Unread",
    "Verdict",
    "explain",
    "headline",
    "needs_of",
    "words_of",
]
