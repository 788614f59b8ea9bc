"""Presentation: what a client sees of an object."""

from __future__ import annotations

import anyio

from packages.devcluster.tests.apiserver.builders import CONFIG_MAP, config_map
from trainer.kube.clock import timestamp
from trainer_devcluster.apiserver.reads.reading import Presenter
from trainer_devcluster.apiserver.tables.table import IncludeObject
from trainer_devcluster.apiserver.wire.headers import answer_format
from trainer_kube_testing.clock import ManualClock


def test_age_in_a_watched_table_is_reported_when_the_row_is_written() -> None:
    """A row that a long watch sends late shows the object's age then, not at the start of the watch."""
    clock = ManualClock()
    wanted = answer_format("application/json;as=Table;v=v1;g=meta.k8s.io")
    presenter = Presenter(CONFIG_MAP, wanted, IncludeObject.NONE, clock)
    obj = config_map("a")
    obj["metadata"]["creationTimestamp"] = timestamp(clock.now())

    anyio.run(clock.advance, 90)

    event = presenter.event("MODIFIED", obj, first=False)
    assert event["object"]["rows"][0]["cells"][-1] == "90s"
