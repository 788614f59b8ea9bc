"""The names of pods (Kubernetes documentation, "DNS for Services and Pods"), in files instead of a DNS server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import anyio
import anyio.to_thread

from trainer.kube.objects import Object, name_of, namespace_of

CLUSTER_DOMAIN = "cluster.local"
NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_LONGEST_HOSTNAME = 63


@dataclass(frozen=True, slots=True)
class PodNames:
    """A pod's address and what it is called."""

    namespace: str
    hostname: str
    subdomain: str
    """Name of the headless service; "" if nobody but the pod itself can look it up."""
    address: str

    @classmethod
    def of(cls, pod: Object, address: str) -> PodNames:
        """The names that a pod's specification gives it; others find it only if it has both hostname and subdomain."""
        spec = pod["spec"]
        hostname = (spec.get("hostname") or name_of(pod))[:_LONGEST_HOSTNAME].rstrip("-.")
        subdomain = spec.get("subdomain") or ""
        return cls(namespace_of(pod), hostname, subdomain if spec.get("hostname") else "", address)

    def line_for(self, namespace: str) -> str:
        """The line about this pod in the hosts file of a pod in `namespace`.

        The fully qualified name is first, for it is what a lookup by address yields.
        """
        services = service_names(self.subdomain, self.namespace, reader=namespace)
        names = [f"{self.hostname}.{service}" for service in services]
        if namespace == self.namespace:
            names.append(self.hostname)
        return " ".join([f"{self.address}\t{names[0]}", *names[1:], *services])


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """One address that the name of a Service stands for."""

    namespace: str
    service: str
    address: str

    def line_for(self, namespace: str) -> str:
        """The line about this address in the hosts file of a pod in `namespace`."""
        return f"{self.address}\t{' '.join(service_names(self.service, self.namespace, reader=namespace))}"


def service_names(service: str, namespace: str, *, reader: str) -> list[str]:
    """What a Service of a namespace is called in the namespace `reader`."""
    zones = [f"{namespace}.svc.{CLUSTER_DOMAIN}", f"{namespace}.svc", namespace]
    return [f"{service}.{zone}" for zone in zones] + ([service] if reader == namespace else [])


def headless_addresses(
    services: Iterable[Mapping[str, Any]], pods: Iterable[tuple[PodNames, Mapping[str, str]]]
) -> list[ServiceAddress]:
    """What the names of headless Services stand for: the pods that they select, whether ready or not.

    Args:
        services: of the cluster.
        pods: names and labels of those that run; the line of one that has the Service as its subdomain says it already.
    """
    pods = list(pods)
    found = []
    for service in services:
        spec, name, namespace = service.get("spec") or {}, name_of(service), namespace_of(service)
        selector = spec.get("selector") or {}
        if spec.get("clusterIP") != "None" or not selector:
            continue
        for names, labels in pods:
            is_selected = names.namespace == namespace and selector.items() <= labels.items()
            if is_selected and names.subdomain != name:
                found.append(ServiceAddress(namespace, name, names.address))
    return found


def hosts_file(
    owner: PodNames,
    everyone: Iterable[PodNames],
    preamble: str,
    aliases: str = "",
    *,
    services: Iterable[ServiceAddress] = (),
) -> str:
    """The /etc/hosts of a pod.

    Args:
        owner: the pod that reads it; its own host name is there even without a subdomain.
        everyone: all pods of the cluster.
        preamble: how the file begins.
        aliases: lines for the pod's hostAliases.
        services: what Services stand for.
    """
    lines = [preamble.rstrip("\n"), "# Written by the dev cluster as pods come and go."]
    if not owner.subdomain:
        lines.append(f"{owner.address}\t{owner.hostname}")
    lines += [names.line_for(owner.namespace) for names in everyone if names.subdomain]
    lines += [service.line_for(owner.namespace) for service in services]
    return "\n".join(line for line in (*lines, aliases.rstrip("\n")) if line) + "\n"


def host_aliases(pod: Object) -> str:
    """Lines for the pod's `hostAliases`."""
    entries = pod["spec"].get("hostAliases") or []
    return "".join(f"{entry['ip']}\t{' '.join(entry.get('hostnames') or [])}\n" for entry in entries)


def rewrite_in_place(path: Path, text: str) -> None:
    """Replace a file's content but not the file, which is bind-mounted in containers.

    A reader in between sees old or new lines, but never half of an old line after the new ones: the rest of a longer
    old content is overwritten with newlines before it is cut off.
    """
    content = text.encode()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        present = os.fstat(descriptor).st_size
        os.pwrite(descriptor, content.ljust(present, b"\n"), 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class _Entry:
    names: PodNames
    file: Path
    aliases: str
    labels: Mapping[str, str]


class HostsFiles:
    """Keeps the hosts files of all running pods up to date.

    Args:
        preamble: how each file begins.
        api_server: address of the API server's Service for pods. Default: its name is not known.
        services: lists the Services of the cluster. Default: there are none.
    """

    def __init__(
        self, preamble: str, api_server: str = "", services: Callable[[], Iterable[Mapping[str, Any]]] = tuple
    ) -> None:
        self._preamble = preamble
        self._api_server = [ServiceAddress("default", "kubernetes", api_server)] if api_server else []
        self._services = services
        self._entries: dict[str, _Entry] = {}
        self._lock = anyio.Lock()

    async def add(
        self, uid: str, names: PodNames, file: Path, aliases: str = "", labels: Mapping[str, str] = NO_LABELS
    ) -> None:
        """Write the hosts files for a new pod: its own, and its entry in those of the others."""
        self._entries[uid] = _Entry(names, file, aliases, labels)
        await self._write()

    async def refresh(self) -> None:
        """Update the hosts files of all pods after Services have come or gone."""
        await self._write()

    async def remove(self, uid: str) -> None:
        """Forget a pod that has ended."""
        if self._entries.pop(uid, None) is not None:
            await self._write()

    async def _write(self) -> None:
        async with self._lock:
            entries = tuple(self._entries.values())
            pods = [(entry.names, entry.labels) for entry in entries]
            services = [*self._api_server, *headless_addresses(self._services(), pods)]
            await anyio.to_thread.run_sync(self._write_all, entries, services)

    def _write_all(self, entries: tuple[_Entry, ...], services: list[ServiceAddress]) -> None:
        everyone = [entry.names for entry in entries]
        for entry in entries:
            text = hosts_file(entry.names, everyone, self._preamble, entry.aliases, services=services)
            rewrite_in_place(entry.file, text)
