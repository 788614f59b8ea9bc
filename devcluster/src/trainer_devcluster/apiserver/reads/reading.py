"""Read requests: get and list."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from trainer.kube.api_semantics import statuses
from trainer.kube.api_semantics.paging import Lists, Page
from trainer.kube.clock import move_on_after
from trainer.kube.objects import key_of, namespace_of
from trainer_devcluster.apiserver.definitions.field_selectors import Selectors
from trainer_devcluster.apiserver.definitions.resource_definition import as_requested
from trainer_devcluster.apiserver.storage.storage import Partition
from trainer_devcluster.apiserver.wire.params import Match

if TYPE_CHECKING:
    from collections.abc import Callable

    from trainer.kube.objects import Object
    from trainer_devcluster.apiserver.backend import Backend
    from trainer_devcluster.apiserver.definitions.routing import Target
    from trainer_devcluster.apiserver.wire.params import ListParameters

REVISION_TIMEOUT = 3.0
"""Seconds for which a request waits for a revision that has not been reached."""


def get(backend: Backend, target: Target) -> Object:
    """The object as it is stored.

    Raises:
        ApiError: 404, there is none.
    """
    obj = backend.storage.get(Partition.of(target.definition.resource), target.key)
    if obj is None:
        raise statuses.not_found(target.definition.resource, target.name)
    return obj


async def list_page(backend: Backend, target: Target, parameters: ListParameters) -> Page[Object]:
    """One page of the selected objects, in the version of the target.

    Raises:
        ApiError: 400 for malformed selectors or tokens, 410 for a past that is forgotten, 504 for a future that does
            not come.
    """
    partition = Partition.of(target.definition.resource)
    selectors = Selectors(target.definition, parameters.label_selector, parameters.field_selector)
    select = selected_in(target, selectors)
    lists = Lists(partial(backend.storage.snapshot, partition), key_of, lambda: backend.storage.revision)
    if parameters.continue_token:
        page = lists.next_page(select, parameters.limit, parameters.continue_token)
    else:
        await reach_revision(backend, parameters.resource_version or 0)
        page = lists.first_page(select, parameters.limit, _exact_revision(parameters))
    page = replace(page, items=[as_requested(target.definition, obj) for obj in page.items])
    if selectors.select_everything:
        return page
    # How many follow is known only without selectors, as in the real server.
    return Page(page.items, page.revision, page.continue_token)


def selected_in(target: Target, selectors: Selectors) -> Callable[[Object], bool]:
    """Whether an object is in the target's namespace and selected."""
    namespace, everything = target.namespace, selectors.select_everything

    def select(obj: Object) -> bool:
        if namespace is not None and namespace_of(obj) != namespace:
            return False
        if everything:
            return True
        return selectors.match(as_requested(target.definition, obj))

    return select


async def reach_revision(backend: Backend, revision: int) -> None:
    """Wait until the storage has reached a revision.

    Raises:
        ApiError: 504, it has not after three seconds.
    """
    if revision <= backend.storage.revision:
        return
    async with move_on_after(backend.clock, REVISION_TIMEOUT) as scope:
        await backend.storage.wait_for_revision(revision)
    if scope.cancelled_caught:
        raise statuses.resource_version_too_large(revision, backend.storage.revision)


def _exact_revision(parameters: ListParameters) -> int | None:
    if parameters.match is Match.EXACT:
        return parameters.resource_version
    # A limit with a resource version and no match means that very version, for old clients.
    if parameters.match is None and parameters.limit and parameters.resource_version:
        return parameters.resource_version
    return None
