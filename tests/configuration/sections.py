"""Any configuration that a file could say."""

from __future__ import annotations

import re

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from trainer.api.patterns import OBJECT_NAME
from trainer.kube.objects import Object

NAMES = st.text("abc-.é0'\"#: \n", min_size=1, max_size=8)
TEXTS = st.just("") | NAMES
OBJECT_NAMES = st.text("abc-.0", min_size=1, max_size=8).filter(re.compile(OBJECT_NAME).fullmatch)
PORTS = st.integers(1, 65535)
ADDRESSES = st.just("0") | PORTS.map(":{}".format) | PORTS.map("[::1]:{}".format)
SECONDS = st.integers(1, 10**9).map("{}ms".format)


def some(**fields: SearchStrategy[object]) -> SearchStrategy[Object]:
    """Any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def sections() -> SearchStrategy[Object]:
    """Sections, whose limits are kept, though not everything that must fit together."""
    return some(
        webhook=some(enabled=st.booleans(), port=PORTS, host=TEXTS, hosts=st.lists(NAMES, max_size=3)),
        certManagement=some(enable=st.booleans(), certificateDirectory=NAMES, namespace=OBJECT_NAMES),
        leaderElection=some(
            leaderElect=st.booleans(),
            resourceName=OBJECT_NAMES,
            resourceLock=st.sampled_from(["leases", ""]),
            leaseDuration=st.integers(11, 2**31 - 1).map("{}s".format),
            renewDeadline=st.integers(2500, 10_999).map("{}ms".format),
            retryPeriod=st.integers(1, 2_000_000).map("{}us".format),
        ),
        metrics=some(bindAddress=ADDRESSES, secureServing=st.booleans(), auth=some(enabled=st.booleans())),
        health=some(healthProbeBindAddress=ADDRESSES),
        controller=some(
            groupKindConcurrency=st.dictionaries(
                st.sampled_from(["TrainJob.trainer.kubeflow.org", "TrainingRuntime.trainer.kubeflow.org"]),
                st.integers(1, 1000),
            ),
            namespace=st.just("") | OBJECT_NAMES,
            cacheSyncTimeout=SECONDS,
            gracefulShutdownTimeout=st.integers(-(10**9), 10**9).map("{}ms".format),
        ),
        controllers=some(v1=some(enabled=st.booleans())),
        clientConnection=some(qps=st.floats(0, 1e6), burst=st.integers(0, 2**31 - 1)),
        tls=some(minVersion=st.sampled_from(["1.2", "1.3"]), nextProtos=st.just(["http/1.1"])),
        progress=some(stallTimeout=SECONDS),
        plugins=some(enabled=st.lists(NAMES), configuration=st.dictionaries(NAMES, st.just({"size": 1}))),
        gangScheduling=st.sampled_from(["none", "auto", "workload", "coscheduling", "volcano"]),
        gangSchedulerName=st.just("") | OBJECT_NAMES,
        devices=st.lists(st.builds(lambda name: {"resourceName": f"example.com/{name}"}, OBJECT_NAMES), max_size=3),
        logging=some(level=st.sampled_from(["debug", "error"]), format=st.sampled_from(["auto", "json"])),
    )
