"""CA injection: keeps the CA bundle of a certificate source in webhook configurations, so that API servers trust it.

Needed: get, list, watch and patch on the configurations, by their names. Each one is watched, so that a bundle that
an apply has removed is back at once. All replicas inject, without leadership, and mostly find that another has done it.
A replica that sees a difference refreshes its source first, since the bundle of another replica may be newer; if it
cannot, it only adds missing bundles. Replicas that disagree wait longer after each write.

The caBundle of *all* webhooks in a configuration is written, as they are all taken to lead to this server.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence

import anyio

from trainer.kube.backoff import Backoff
from trainer.kube.cache.cache import Cache
from trainer.kube.cache.cached_object import CachedObject
from trainer.kube.cache.change_handler import ChangeHandler
from trainer.kube.cache.informer import Informer
from trainer.kube.client import Client, PatchType
from trainer.kube.clock import Clock
from trainer.kube.errors import ConflictError, ForbiddenError, InvalidError, KubeError
from trainer.kube.logger import get_logger
from trainer.kube.manager.manager import Manager
from trainer.kube.manager.supervisor import Group
from trainer.kube.objects import Object, ObjectKey, resource_version_of
from trainer.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from trainer.kube.selection import Selection
from trainer.kube.serving.certificates import CertificateSource

log = get_logger(__name__)

FIELD_MANAGER = "ca-injector"
"""Owner of the fields that are written here."""

_BACKOFF = Backoff(initial=1, maximum=60, jitter=0.5)


class CaInjector:
    """Writes the bundle of a source into configurations, and keeps it there.

    It adds itself to the manager, in the group of webhooks. A configuration that does not exist is waited for.

    Args:
        manager: runs it; its clock, metrics and `api_reader` are used.
        certificates: the source, which a `WebhookServer` runs.
        validating: names of ValidatingWebhookConfigurations.
        mutating: names of MutatingWebhookConfigurations.
    """

    def __init__(
        self,
        manager: Manager,
        certificates: CertificateSource,
        *,
        validating: Sequence[str] = (),
        mutating: Sequence[str] = (),
    ) -> None:
        self._certificates = certificates
        # Not that of the manager, which starts later.
        self._cache = Cache(manager.api_reader, clock=manager.clock, metrics=manager.metrics)
        named = (
            (VALIDATING_WEBHOOK_CONFIGURATIONS, validating),
            (MUTATING_WEBHOOK_CONFIGURATIONS, mutating),
        )
        self._injections = [
            Injection(
                self._cache.informer(resource, Selection(field_selector=f"metadata.name={name}")),
                name,
                certificates,
                client=manager.api_reader,
                clock=manager.clock,
            )
            for resource, names in named
            for name in names
        ]
        manager.add(self.run, name="CA injector", group=Group.WEBHOOKS)

    async def run(self) -> None:
        """Inject until cancelled; call it once."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cache.run)
            for injection in self._injections:
                tasks.start_soon(injection.run)

    async def check(self) -> None:
        """A check for `Manager.add_ready_check`, where pods shall not be ready before API servers trust them.

        Raises:
            KubeError: names what lacks the bundle, and why.
        """
        problems = [injection.problem for injection in self._injections if injection.problem]
        if problems:
            raise KubeError("; ".join(problems))


class Injection:
    """The bundle in one configuration.

    Args:
        informer: of this one object.
        name: its name.
        certificates: where the bundle is from.
        client: writes it.
        clock: for pauses.
    """

    def __init__(
        self, informer: Informer, name: str, certificates: CertificateSource, *, client: Client, clock: Clock
    ) -> None:
        self._informer = informer
        self._name = name
        self._subject = f"{informer.resource.kind} {name}"
        self._certificates = certificates
        self._client = client
        self._clock = clock
        self._wake = anyio.Event()
        self._writes, self._written = 0, -math.inf
        self._problem = f"{self._subject} has not been read yet"
        informer.add_handler(ChangeHandler(self._look_again, self._look_again))

    @property
    def problem(self) -> str:
        """Why the configuration lacks the bundle; "" while it has it."""
        return self._problem or self._informer.problem or ""

    async def run(self) -> None:
        """Inject until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow_bundle)
            await self._informer.wait_for_sync()
            failures = 0
            while True:
                self._wake = anyio.Event()
                try:
                    is_written = await self._inject()
                except KubeError as error:
                    self._fail(error, failures)
                    await self._clock.sleep(_BACKOFF.pause(failures))
                    failures += 1
                else:
                    failures = 0
                    if is_written:
                        await self._clock.sleep(_BACKOFF.pause(self._writes_in_a_row()))
                    await self._wake.wait()

    def _look_again(self, _: CachedObject) -> None:
        self._wake.set()

    def _writes_in_a_row(self) -> int:
        """How many writes there were before this one, without a long pause between them."""
        now = self._clock.monotonic()
        self._writes = self._writes + 1 if now - self._written < 2 * _BACKOFF.maximum else 0
        self._written = now
        return self._writes

    async def _follow_bundle(self) -> None:
        pem = self._certificates.ca.pem
        while True:
            pem = await self._certificates.ca.other_than(pem)
            self._wake.set()

    async def _inject(self) -> bool:
        """Give the configuration the bundle; returns whether that took a write."""
        stored = self._informer.lister.get(ObjectKey("", self._name))
        if stored is None:
            self._note(f"{self._subject} does not exist; it is waited for")
            return False
        if not self._certificates.ca.pem:
            # The source tells in the log what is wrong, if anything is.
            reason = self._certificates.problem or "no ca.crt"
            self._problem = f"the CA bundle for {self._subject} is not known: {reason}"
            return False
        operations = _operations(stored, self._certificates.ca.pem)
        if operations:
            await self._certificates.refresh()
            unknown = self._certificates.problem
            operations = _operations(stored, self._certificates.ca.pem, only_missing=bool(unknown))
            await self._write(stored, operations)
            if unknown and len(operations) < len(_operations(stored, self._certificates.ca.pem)):
                raise KubeError(f"its CA bundle may be newer than ours, which could not be renewed: {unknown}")
        self._problem = ""
        return bool(operations)

    async def _write(self, stored: Object, operations: Sequence[Object]) -> None:
        if not operations:
            return
        # The operations name webhooks by their positions, which are those of this version.
        unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version_of(stored)}
        written = await self._client.patch(
            self._informer.resource,
            self._name,
            [unchanged, *operations],
            patch_type=PatchType.JSON,
            field_manager=FIELD_MANAGER,
        )
        self._informer.wrote(written)
        log.info("injected CA bundle", into=self._subject, webhooks=len(operations))

    def _fail(self, error: KubeError, failures: int) -> None:
        if isinstance(error, ConflictError | InvalidError) and not failures:
            # It has changed meanwhile, perhaps by another replica that was quicker.
            return
        remedy = f"; grant list, watch and patch on {self._subject}" if isinstance(error, ForbiddenError) else ""
        self._note(f"{self._subject}: {error}{remedy}")

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            log.warning("could not inject CA bundle, will retry", reason=problem)


def _operations(obj: Object, bundle: bytes, *, only_missing: bool = False) -> list[Object]:
    """JSON patch that gives this bundle to every webhook of a configuration, or to those without a bundle."""
    encoded = base64.b64encode(bundle).decode()
    present = [(webhook.get("clientConfig") or {}).get("caBundle") for webhook in obj.get("webhooks") or []]
    return [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": encoded}
        for index, written in enumerate(present)
        if written != encoded and not (only_missing and written)
    ]
