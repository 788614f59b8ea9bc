"""Server-side apply of what differs, and only that."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.framework.samples import train_job_object
from tests.framework.static_reader import StaticReader
from trainer.framework.deploying.child import (
    APPLIED_HASH,
    DELETE_WHEN_FINISHED,
    LIVES_ON,
    SPEC_HASH,
    ForeignObjectError,
)
from trainer.framework.deploying.deployer import ApplyResult, Deployer
from trainer.framework.plugin_api.component import ADOPTED, Component, Loss, Replacement, Revision
from trainer.framework.plugin_api.errors import BuildDefectError, BuildError
from trainer.framework.plugin_api.plugin_context import CacheReader
from trainer.framework.runtimes.runtimes import RUNTIME_DIGEST
from trainer.kube.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServiceUnavailableError,
)
from trainer.kube.objects import Object, annotations_of, controller_of, controller_reference, uid_of
from trainer.kube.resource import CONFIG_MAPS, SECRETS
from trainer.workloads import JOBSETS
from trainer_kube_testing import FakeClient, ManualClock

OWNER = train_job_object()
IMMUTABLE = ApplyResult(immutable_fields=("ConfigMap data.a",))


class Cluster:
    """A fake API server and a cache that the test brings up to date."""

    def __init__(self) -> None:
        self.client = FakeClient(resources=[JOBSETS])
        self.reader = StaticReader()
        self.clock = ManualClock()
        self.deployer = Deployer(self.client, self.reader, self.clock)

    async def deploy(self, *components: Component) -> ApplyResult:
        """Deploy, then let the cache see it."""
        refused = await self.deployer.deploy(OWNER, components)
        for obj in [*self.client.objects(CONFIG_MAPS), *self.client.objects(JOBSETS)]:
            self.reader.add(obj)
        return refused

    @property
    def stored(self) -> Object:
        """The only ConfigMap."""
        (obj,) = self.client.objects(CONFIG_MAPS)
        return obj


def component(*, revise: Any = None, labels: Object | None = None, **data: str) -> Component:
    """A ConfigMap."""
    metadata = {"name": "demo", "namespace": "default"} | ({"labels": labels} if labels else {})
    return Component(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, revise)


def jobset() -> Component:
    """What runs the pods."""
    obj = {"apiVersion": JOBSETS.api_version, "kind": "JobSet", "metadata": {"name": "demo", "namespace": "default"}}
    return Component(JOBSETS, obj, runs_pods=True, runtime_digest="d")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_creates_what_is_missing(cluster: Cluster) -> None:
    """A new object is applied by our field manager and controlled by the TrainJob."""
    assert cluster.deployer.missing([component()])
    assert await cluster.deploy(component(a="1")) == ApplyResult()
    assert not cluster.deployer.missing([component()])
    (request,) = cluster.client.requests
    assert (request.verb, request.field_manager) == ("apply", "trainer")
    owner = controller_of(cluster.stored)
    assert owner is not None
    assert owner["kind"] == "TrainJob"
    assert owner["uid"] == uid_of(OWNER)
    assert cluster.stored["data"] == {"a": "1"}


@pytest.mark.parametrize("is_first", [True, False])
async def test_what_pods_need_is_there_before_them(cluster: Cluster, is_first: bool) -> None:
    """A JobSet is applied after everything else, whatever the order of the plugins."""
    await cluster.deploy(*([jobset(), component()] if is_first else [component(), jobset()]))
    assert [request.resource for request in cluster.client.requests] == [CONFIG_MAPS, JOBSETS]


async def test_sends_nothing_twice(cluster: Cluster) -> None:
    """An object that is as we want it costs no request, whatever others have added to it."""
    await cluster.deploy(component(a="1"))
    await cluster.client.patch(CONFIG_MAPS, "demo", {"data": {"theirs": "x"}}, "default")
    cluster.reader.add(cluster.stored)
    cluster.client.requests.clear()
    await cluster.deploy(component(a="1"))
    assert cluster.client.requests == []


@pytest.mark.parametrize(
    "change", [pytest.param({"a": "2"}, id="changed-by-others"), pytest.param({"a": None}, id="removed-by-others")]
)
async def test_repairs_our_fields(cluster: Cluster, change: Object) -> None:
    """A field of ours that others have changed becomes ours again."""
    wanted = component(a="1", b="1")
    await cluster.deploy(wanted)
    await cluster.client.patch(CONFIG_MAPS, "demo", {"data": change}, "default", field_manager="them")
    cluster.reader.add(cluster.stored)
    assert cluster.stored["data"] != {"a": "1", "b": "1"}
    await cluster.deploy(wanted)
    assert cluster.stored["data"] == {"a": "1", "b": "1"}


async def test_takes_back_what_it_no_longer_wants(cluster: Cluster) -> None:
    """A field that we set before and do not want any more goes; what others have set stays."""
    await cluster.deploy(component(a="1", b="1"))
    await cluster.client.patch(CONFIG_MAPS, "demo", {"data": {"theirs": "x"}}, "default")
    cluster.reader.add(cluster.stored)
    await cluster.deploy(component(a="1"))
    assert cluster.stored["data"] == {"a": "1", "theirs": "x"}


@pytest.mark.parametrize(
    "references",
    [
        pytest.param([], id="nobody"),
        pytest.param([{"kind": "TrainJob", "name": "demo", "uid": "an-older-one", "controller": True}], id="older"),
        pytest.param([{"kind": "TrainJob", "name": "demo", "uid": uid_of(OWNER)}], id="owner-but-not-controller"),
    ],
)
async def test_never_adopts(cluster: Cluster, references: list[Object]) -> None:
    """An object that this TrainJob does not control is left alone, and the error says what to do."""
    foreign = component(a="theirs").object
    foreign["metadata"] |= {"ownerReferences": references, "uid": "u"}
    cluster.reader.add(foreign)
    with pytest.raises(ForeignObjectError) as caught:
        await cluster.deploy(component(a="1"))
    assert str(caught.value) == (
        "ConfigMap default/demo (uid u) exists and does not belong to this TrainJob; "
        "delete it or give the TrainJob another name"
    )
    assert cluster.client.requests == []


async def test_does_not_force_its_way_into_what_the_cache_does_not_show(cluster: Cluster) -> None:
    """An object of others that is not in the cache yet meets an apply without force, which conflicts."""
    theirs = component(a="theirs").object
    await cluster.client.apply(CONFIG_MAPS, theirs, field_manager="them")
    with pytest.raises(ConflictError):
        await cluster.deploy(component(a="1"))


async def test_revisions(cluster: Cluster) -> None:
    """A component says what may still change; the rest is reported."""

    def revise(existing: Object) -> Revision | None:
        if existing["data"]["a"] == "frozen":
            return None
        return Revision(existing | {"metadata": component().object["metadata"]}, refused=("data.a",))

    await cluster.deploy(component(a="1", revise=revise))
    assert await cluster.deploy(component(a="2", revise=revise)) == IMMUTABLE
    assert cluster.stored["data"] == {"a": "1"}

    cluster.client.requests.clear()
    assert await cluster.deploy(component(a="2", revise=revise)) == IMMUTABLE
    assert cluster.client.requests == [], "the change is known, so nothing is sent again"

    cluster.reader.add(cluster.stored | {"data": {"a": "frozen"}})
    assert await cluster.deploy(component(a="3", revise=revise)) == ApplyResult()
    assert cluster.client.requests == []


def needed(*, awaits: str = "a has let it go", a: str) -> Component:
    """A ConfigMap that cannot change, which pods may not start without."""
    found = component(a=a)
    revision = Revision(found.object, replacement=Replacement())
    return replace(found, fixed=found.object, awaits=awaits, revise=lambda _: revision)


def resumed(*, starts_pods: bool = True) -> Component:
    """A JobSet that is to be resumed, or else to be changed."""
    wanted = jobset().object | {"spec": {"suspend": False}}
    return replace(jobset(), object=wanted, revise=lambda _: Revision(wanted, starts_pods=starts_pods))


@pytest.mark.parametrize(
    ("awaits", "wanted", "is_held"),
    [
        pytest.param("a has let it go", resumed(), True, id="no-pods-start"),
        pytest.param("a has let it go", resumed(starts_pods=False), False, id="other-changes"),
        pytest.param("", resumed(), False, id="pods-start-without"),
    ],
)
async def test_pods_do_not_start_before_what_they_need(
    cluster: Cluster, awaits: str, wanted: Component, is_held: bool
) -> None:
    """From its deletion until it exists again; the result says what is awaited."""
    suspended = replace(jobset(), object=jobset().object | {"spec": {"suspend": True}})
    await cluster.deploy(needed(awaits=awaits, a="1"), suspended)
    stored = cluster.stored
    stored["metadata"]["finalizers"] = ["example.com/a"]
    cluster.reader.add(cluster.client.add(stored))

    first = await cluster.deploy(needed(awaits=awaits, a="2"), wanted)
    again = await cluster.deploy(needed(awaits=awaits, a="2"), wanted)

    words = ("ConfigMap is made anew once a has let it go",) if awaits else ()
    assert (first.is_held, first.replaced) == (bool(awaits), ("ConfigMap is made anew",))
    assert (again.is_held, again.replaced) == (bool(awaits), words)
    (found,) = cluster.client.objects(JOBSETS)
    assert found["spec"]["suspend"] == is_held

    cluster.client.remove(CONFIG_MAPS, "demo", "default")
    later = Deployer(cluster.client, StaticReader(found), cluster.clock)
    assert await later.deploy(OWNER, [needed(awaits=awaits, a="2"), wanted]) == ApplyResult()
    (found,) = cluster.client.objects(JOBSETS)
    assert (cluster.stored["data"], found["spec"]["suspend"]) == ({"a": "2"}, False)


async def test_no_pods_are_made_before_what_they_need(cluster: Cluster) -> None:
    """What runs them is not created either."""
    await cluster.deploy(needed(a="1"))
    cluster.reader.add(cluster.stored | {"metadata": cluster.stored["metadata"] | {"deletionTimestamp": "now"}})
    assert (await cluster.deployer.deploy(OWNER, [jobset(), needed(a="1")])).is_held
    assert cluster.client.objects(JOBSETS) == []


async def test_what_plugins_do_wrong_has_their_name(cluster: Cluster) -> None:
    """Reading what is not watched, and a revision that raises, are defects of the plugin that built the object."""

    def revise(existing: Object) -> Revision | None:
        raise LookupError(existing["kind"])

    secret = component().object | {"kind": "Secret"}
    unwatched = Component(SECRETS, secret, plugin="acme")
    with pytest.raises(BuildDefectError, match="plugin acme failed in build: LookupError: secrets are not cached"):
        Deployer(cluster.client, CacheReader(), ManualClock()).missing([unwatched])
    await cluster.deploy(component(a="1"))
    with pytest.raises(BuildDefectError, match="plugin acme failed in build: LookupError: ConfigMap"):
        await cluster.deploy(replace(component(a="2", revise=revise), plugin="acme"))


async def test_the_hash_follows_the_wish(cluster: Cluster) -> None:
    """The annotation changes with what the TrainJob asks for, and not otherwise."""
    hashes = []
    for wanted in (component(a="1"), component(a="1"), component(a="2")):
        await cluster.deploy(wanted)
        hashes.append(annotations_of(cluster.stored)[APPLIED_HASH])
    assert hashes[0] == hashes[1] != hashes[2]


async def test_an_object_of_which_metadata_is_cached(cluster: Cluster) -> None:
    """It is applied when the desired object has changed, and not because the cache does not show the rest of it."""

    async def requests(wanted: Component) -> int:
        cluster.client.requests.clear()
        await cluster.deployer.deploy(OWNER, [replace(wanted, metadata_only=True)])
        cluster.reader.add({name: cluster.stored[name] for name in ("apiVersion", "kind", "metadata")})
        return len(cluster.client.requests)

    assert [await requests(component(a=value)) for value in ("1", "1", "2", "2")] == [1, 0, 1, 0]
    assert cluster.stored["data"] == {"a": "2"}


async def test_prunes_what_a_changed_build_no_longer_contains(cluster: Cluster) -> None:
    """Only what it has deployed itself for this TrainJob, and with the uid that it has seen."""
    await cluster.deploy(component(a="1"))
    await cluster.deployer.prune(OWNER, [component(a="2")], is_new=False)
    assert len(cluster.client.objects(CONFIG_MAPS)) == 1

    cluster.client.requests.clear()
    cluster.reader.add(cluster.stored)
    await cluster.deployer.prune(OWNER, [], is_new=False)
    assert cluster.client.objects(CONFIG_MAPS) == []
    (request,) = cluster.client.requests
    assert request.verb == "delete"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"ownerReferences": []}, id="released"),
        pytest.param({"annotations": {}}, id="not-deployed-by-us"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, id="going-already"),
    ],
)
async def test_prunes_nothing_else(cluster: Cluster, change: Object) -> None:
    """Objects of others, such as the snapshot or what a JobSet makes, are not for the deployer to delete."""
    await cluster.deploy(component(a="1"))
    cluster.reader.add(cluster.stored | {"metadata": cluster.stored["metadata"] | change})
    cluster.client.requests.clear()
    await cluster.deployer.prune(OWNER, [], is_new=False)
    assert cluster.client.requests == []


async def test_prunes_only_in_the_namespace_of_the_train_job(cluster: Cluster) -> None:
    """An object of another namespace that names the TrainJob as its owner stays."""
    await cluster.deploy(component(a="1"))
    cluster.client.requests.clear()
    elsewhere = OWNER | {"metadata": OWNER["metadata"] | {"namespace": "other"}}
    await cluster.deployer.prune(elsewhere, [], is_new=False)
    assert cluster.client.requests == []


async def test_deletes_only_its_own(cluster: Cluster) -> None:
    """An object of that name that belongs to somebody else stays."""
    await cluster.deploy(component(a="1"))
    stranger = train_job_object() | {"metadata": {"name": "demo", "namespace": "default", "uid": "another"}}
    await cluster.deployer.delete(stranger, [component()])
    assert len(cluster.client.objects(CONFIG_MAPS)) == 1
    await cluster.deployer.delete(OWNER, [component()])
    assert cluster.client.objects(CONFIG_MAPS) == []


@pytest.mark.parametrize("error", [InvalidError(422, "is immutable"), ForbiddenError(403, "denied the request")])
async def test_what_a_cluster_rejects(cluster: Cluster, error: ApiError) -> None:
    """A change that the cluster rejects is replaced by its fallback, and the answer is reported with the remedy."""

    def revise(existing: Object) -> Revision:
        present = component().object | {"data": existing["data"]}
        smaller = Revision(present | {"data": {"a": "1", "b": "2"}}, refused=("data.c",))
        return Revision(present | {"data": {"a": "9"}}, fallback=smaller, remedy="turn it on")

    await cluster.deploy(component(a="1"))
    cluster.client.faults.fail(error, verb="apply")
    result = await cluster.deploy(component(a="9", revise=revise))
    assert result == ApplyResult(("ConfigMap data.c",), (f"ConfigMap: {error} (turn it on)",))
    assert cluster.stored["data"] == {"a": "1", "b": "2"}
    cluster.client.requests.clear()
    assert await cluster.deploy(component(a="9", revise=revise)) == result, "it has just been asked"
    assert cluster.client.requests == []
    await cluster.clock.advance(301)
    assert await cluster.deploy(component(a="9", revise=revise)) == ApplyResult(), "the cluster may allow it later"
    assert cluster.stored["data"]["a"] == "9"


async def test_a_revision_that_is_none(cluster: Cluster) -> None:
    """It is a defect of the plugin, and not sent."""
    revise: Any = lambda _: {"data": {}}  # noqa: E731 - untyped, as plugins may be
    await cluster.deploy(component(a="1"))
    cluster.client.requests.clear()
    with pytest.raises(BuildDefectError, match="plugin acme failed in build: AttributeError"):
        await cluster.deploy(replace(component(a="2", revise=revise), plugin="acme"))
    assert cluster.client.requests == []


@pytest.mark.parametrize("rest", [pytest.param(None, id="nothing"), pytest.param({"data": {"key": b"x"}}, id="bytes")])
async def test_what_cannot_be_generated(cluster: Cluster, rest: Any) -> None:
    """It is a defect of the plugin, and nothing is created."""
    wrong = replace(keys(cluster, []), generated=lambda: rest, plugin="acme")
    with pytest.raises(BuildDefectError, match="plugin acme failed in build: TypeError"):
        await cluster.deploy(component(a="1"), wrong)
    assert cluster.client.requests == []


def keys(cluster: Cluster, made: list[int]) -> Component:
    """A Secret whose content is another one each time."""

    def generated() -> Object:
        made.append(len(made))
        return {"type": "example.com/key", "data": {"number": f"{made[-1]}"}}

    metadata = {"name": "demo-keys", "namespace": "default"}
    return Component(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, generated=generated)


async def test_what_is_generated_is_made_once(cluster: Cluster) -> None:
    """It is made before all else, although its kind is not watched, and never touched again."""
    made: list[int] = []
    components = [component(a="1"), keys(cluster, made), jobset()]
    assert cluster.deployer.missing(components), "because of the others"
    await cluster.deploy(*components)
    assert [(request.verb, request.resource) for request in cluster.client.requests] == [
        ("create", SECRETS),
        ("apply", CONFIG_MAPS),
        ("apply", JOBSETS),
    ]
    (secret,) = cluster.client.objects(SECRETS)
    assert (secret["data"], secret["type"]) == ({"number": "0"}, "example.com/key")
    assert (controller_of(secret) or {})["uid"] == uid_of(OWNER)

    assert not cluster.deployer.missing(components)
    cluster.client.requests.clear()
    await cluster.deploy(component(a="2"), keys(cluster, made), jobset())
    assert [request.resource for request in cluster.client.requests] == [CONFIG_MAPS]
    assert made == [0]


async def test_a_generated_object_is_there_before_pods_are_made_anew(cluster: Cluster) -> None:
    """One that somebody has deleted is made again when what runs pods is resumed or made anew, and not before."""
    made: list[int] = []
    await cluster.deploy(keys(cluster, made), jobset())
    cluster.client.remove(SECRETS, "demo-keys", "default")
    for starts_pods, expected in ((False, [0]), (True, [0, 1])):
        revised = partial(revised_jobset, starts_pods=starts_pods)
        await cluster.deploy(keys(cluster, made), replace(jobset(), revise=revised))
        assert made == expected
    assert len(cluster.client.objects(SECRETS)) == 1


def revised_jobset(existing: Object, *, starts_pods: bool) -> Revision:
    """The JobSet as it is."""
    return Revision(existing, starts_pods=starts_pods)


async def test_a_generated_object_that_pods_miss(cluster: Cluster) -> None:
    """It is made again once for each sign of the loss, unless pods that hold the lost one still exist."""
    made: list[int] = []
    await cluster.deploy(keys(cluster, made), jobset())
    for seen, may_replace, expected in (
        ("", True, [0]),
        ("first", True, [0, 1]),
        ("first", True, [0, 1]),
        ("second", False, [0, 1]),
        ("second", True, [0, 1]),
        ("third", True, [0, 1, 2]),
    ):
        cluster.client.remove(SECRETS, "demo-keys", "default") if cluster.client.objects(SECRETS) else None
        loss = Loss(partial(str, seen), partial(bool, may_replace))
        await cluster.deploy(replace(keys(cluster, made), loss=loss), jobset())
        assert made == expected


async def test_a_lost_object_that_cannot_be_made_just_now(cluster: Cluster) -> None:
    """The next attempt makes it, although there is no further sign of the loss: kubelets repeat one and the same."""
    made: list[int] = []
    await cluster.deploy(keys(cluster, made), jobset())
    cluster.client.remove(SECRETS, "demo-keys", "default")
    lost = replace(keys(cluster, made), loss=Loss(partial(str, "seen"), partial(bool, True)))
    cluster.client.faults.fail(ServiceUnavailableError(503, "not now"), verb="create")
    with pytest.raises(ServiceUnavailableError):
        await cluster.deploy(lost, jobset())
    for _ in range(2):
        await cluster.deploy(lost, jobset())
    assert len(cluster.client.objects(SECRETS)) == 1
    assert made == [0, 1, 2]


async def test_a_generated_object_is_never_read(cluster: Cluster) -> None:
    """The manager needs no right to read Secrets: what is there under the name is from an earlier attempt."""
    made: list[int] = []
    cluster.client.faults.fail(AlreadyExistsError(409, "keys exist"), verb="create")
    await cluster.deploy(component(a="1"), keys(cluster, made))
    assert [(request.verb, request.resource) for request in cluster.client.requests] == [
        ("create", SECRETS),
        ("apply", CONFIG_MAPS),
    ]


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_generated_object_of_a_common_name(cluster: Cluster, is_own: bool) -> None:
    """One that exists is kept if it is the TrainJob's, and keeps it waiting if it is that of another of the name."""
    secret = replace(keys(cluster, []), asks_owner=True)
    owner = OWNER if is_own else OWNER | {"metadata": OWNER["metadata"] | {"uid": "earlier"}}
    await cluster.deployer.deploy(owner, [secret, jobset()])
    if is_own:
        await cluster.deploy(secret, jobset())
    else:
        with pytest.raises(ForeignObjectError, match="does not belong to this TrainJob"):
            await cluster.deploy(secret, jobset())


async def test_a_generated_object_that_is_refused(cluster: Cluster) -> None:
    """Nothing that needs it is made without it."""
    cluster.client.faults.fail(ForbiddenError(403, "exceeded quota"), verb="create")
    with pytest.raises(ForbiddenError, match="exceeded quota"):
        await cluster.deploy(component(a="1"), keys(cluster, []))
    assert cluster.client.objects(CONFIG_MAPS) == []


async def test_a_generator_that_raises_is_a_defect(cluster: Cluster) -> None:
    """It has the name of its plugin."""

    def generated() -> Object:
        raise KeyError("entropy")

    broken = replace(keys(cluster, []), generated=generated, plugin="acme")
    with pytest.raises(BuildDefectError, match="plugin acme failed in build: KeyError"):
        await cluster.deploy(broken)


@pytest.mark.parametrize("is_of_before", [False, True])
async def test_the_end(cluster: Cluster, is_of_before: bool) -> None:
    """Objects that ask for it are deleted when the TrainJob has ended, as release 0.1 made them too; others stay."""
    metadata = {"name": "passing", "namespace": "default"}
    passing = Component(
        CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, delete_when_finished=True
    )
    await cluster.deploy(component(a="1"), passing)
    if is_of_before:
        made = await cluster.client.get(CONFIG_MAPS, "passing", "default")
        annotations = {APPLIED_HASH: annotations_of(made)[APPLIED_HASH], LIVES_ON: "false"}
        cluster.reader.add(made | {"metadata": made["metadata"] | {"annotations": annotations}})
    await cluster.deployer.end(OWNER)
    assert [obj["metadata"]["name"] for obj in cluster.client.objects(CONFIG_MAPS)] == ["demo"]


@pytest.mark.parametrize("name", [DELETE_WHEN_FINISHED, LIVES_ON, SPEC_HASH, RUNTIME_DIGEST, ADOPTED])
async def test_annotations_of_users_do_not_say_where_an_object_comes_from(cluster: Cluster, name: str) -> None:
    """Those by which the deployer knows its objects are not taken from what the TrainJob asks for."""
    wanted = component(a="1")
    wanted.object["metadata"]["annotations"] = {name: "false", "theirs": "x"}
    await cluster.deploy(wanted)
    assert annotations_of(cluster.stored).keys() == {APPLIED_HASH, "theirs"}


async def test_a_kind_that_is_not_served(cluster: Cluster) -> None:
    """It is reported before anything is made, with the remedy."""
    cluster.reader.unserved.add(CONFIG_MAPS)
    with pytest.raises(BuildError, match="configmaps: Forbidden: the API server does not serve them; install the CRD"):
        cluster.deployer.missing([component(a="1")])


async def test_a_kind_that_has_just_been_withdrawn(cluster: Cluster) -> None:
    """What the cache does not know yet is reported with the remedy; what else is not found stays as it is."""
    cluster.client.faults.fail(NotFoundError(404, "404 page not found"), verb="apply")
    with pytest.raises(NotFoundError, match=r"configmaps: Forbidden: .*install the CRD configmaps"):
        await cluster.deploy(component(a="1"))
    gone = NotFoundError(404, 'namespaces "default" not found', status={"details": {"name": "default"}})
    cluster.client.faults.fail(gone, verb="apply")
    with pytest.raises(NotFoundError, match='namespaces "default" not found'):
        await cluster.deploy(component(a="1"))


async def test_what_a_selective_cache_does_not_show(cluster: Cluster) -> None:
    """Where only some objects of a kind are cached, one of somebody else is found before it is taken over."""
    cluster.reader.selected.add(CONFIG_MAPS)
    theirs = component(theirs="1").object
    cluster.client.add(theirs)
    with pytest.raises(ForeignObjectError, match="ConfigMap default/demo"):
        await cluster.deploy(component(a="1"))
    cluster.client.remove(CONFIG_MAPS, "demo", "default")
    assert await cluster.deploy(component(a="1")) == ApplyResult()
    assert cluster.stored["data"] == {"a": "1"}


@pytest.mark.parametrize(("may_change", "data"), [(False, {"a": "1"}), (True, {"a": "2"})])
async def test_an_own_object_without_labels(cluster: Cluster, may_change: bool, data: Object) -> None:
    """One that lost the labels of the watch gets them again; its content changes if its component lets it."""
    cluster.reader.selected.add(CONFIG_MAPS)
    hidden = component(a="1").object
    hidden["metadata"]["ownerReferences"] = [controller_reference(OWNER)]
    await cluster.client.apply(CONFIG_MAPS, hidden, field_manager="trainer", force=False)
    wanted = component(a="2")
    wanted.object["metadata"]["labels"] = {"watched": "yes"}
    await cluster.deploy(replace(wanted, revise=lambda _: Revision(wanted.object) if may_change else None))
    assert cluster.stored["data"] == data
    assert cluster.stored["metadata"]["labels"] == {"watched": "yes"}
