"""Exec credential plugins: programs that print the credentials of a kubeconfig user.

The protocol is `client.authentication.k8s.io` (Kubernetes documentation, "Authenticating", "client-go credential
plugins"). kubernetes-asyncio runs plugins too, but without client certificates and cluster information, looking for
relative commands in the wrong directory, and hiding what they print for a person to read, such as the address to log in
at; hence our own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import msgspec

from trainer.kube.errors import ConfigurationError
from trainer.kube.json_text import decode_json
from trainer.kube.logger import get_logger
from trainer.kube.rest.credentials import Identity
from trainer.kube.rest.tls import ClientCertificate

log = get_logger(__name__)

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class _EnvironmentVariable(msgspec.Struct):
    name: str
    value: str


class _Stanza(msgspec.Struct, rename="camel"):
    """`exec` of a kubeconfig user."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[_EnvironmentVariable] | None = None
    install_hint: str | None = None
    interactive_mode: str | None = None
    provide_cluster_info: bool = False


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status


_answers = msgspec.json.Decoder(_Answer)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """How to run one plugin."""

    command: str
    """Program: a path, or a name to look for in $PATH."""
    origin: str
    """User and kubeconfig that name the plugin, for messages."""
    _stanza: _Stanza = field(repr=False)
    _cluster: Mapping[str, Any]
    """The cluster's address and CA, for plugins that ask for it."""

    @classmethod
    def parse(cls, stanza: object, *, directory: Path, origin: str, cluster: Mapping[str, Any]) -> ExecPlugin:
        """From `exec` of a kubeconfig user.

        A command with a slash is relative to `directory`, that of the kubeconfig. `origin` names user and kubeconfig in
        messages, and `cluster` is for plugins that ask for it.

        Raises:
            ConfigurationError: a field is missing or wrong.
        """
        try:
            parsed = msgspec.convert(stanza, _Stanza)
        except msgspec.ValidationError as error:
            raise ConfigurationError(f"{origin}: exec: {error}") from error
        if parsed.api_version not in API_VERSIONS:
            supported = " or ".join(API_VERSIONS)
            raise ConfigurationError(
                f"{origin}: exec.apiVersion {parsed.api_version!r} is not supported: use {supported}"
            )
        mode = parsed.interactive_mode
        if mode not in {None, "", "Never", "IfAvailable", "Always"}:
            raise ConfigurationError(
                f"{origin}: exec.interactiveMode {mode!r} is unknown: use Never, IfAvailable or Always"
            )
        command = parsed.command
        if not command:
            raise ConfigurationError(f"{origin}: exec.command is empty; name the plugin's program")
        return cls(str(directory / command) if "/" in command else command, origin, parsed, cluster)

    async def run(self) -> Identity:
        """Run the plugin until it has printed credentials; cancelling ends it.

        There is no time limit, since a person may have to log in.

        Raises:
            ConfigurationError: it could not be run, failed, or printed something else.
        """
        interactive = self._is_interactive()
        process = await self._start(interactive=interactive)
        output, complaint = bytearray(), bytearray()
        async with process:
            async with anyio.create_task_group() as tasks:
                if process.stderr is not None:
                    tasks.start_soon(self._pass_on, process.stderr, complaint)
                assert process.stdout is not None
                async for chunk in process.stdout:
                    output += chunk
            code = await process.wait()
        if code != 0:
            said = " ".join(complaint.decode(errors="replace").split())[-500:]
            raise self._error(f"exit code {code}" + (f": {said}" if said else ""))
        return self._identity(bytes(output))

    def _is_interactive(self) -> bool:
        available = sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
        if self._stanza.interactive_mode == "Always" and not available:
            raise self._error("it needs a terminal (interactiveMode is Always): use other credentials for this process")
        return available and self._stanza.interactive_mode != "Never"

    async def _start(self, *, interactive: bool) -> anyio.abc.Process:
        stanza = self._stanza
        spec = {"interactive": interactive} | ({"cluster": self._cluster} if stanza.provide_cluster_info else {})
        request = {"apiVersion": stanza.api_version, "kind": "ExecCredential", "spec": spec}
        environment = {variable.name: variable.value for variable in stanza.env or ()}
        try:
            return await anyio.open_process(
                [self.command, *(stanza.args or ())],
                env=os.environ | environment | {"KUBERNETES_EXEC_INFO": json.dumps(request)},
                stdin=None if interactive else subprocess.DEVNULL,
                stderr=None if interactive else subprocess.PIPE,
            )
        except OSError as error:
            hint = " ".join((stanza.install_hint or "").split()) or "install it or correct exec.command"
            raise self._error(f"{error.strerror}; {hint}") from error

    async def _pass_on(self, stream: anyio.abc.ByteReceiveStream, complaint: bytearray) -> None:
        async for chunk in stream:
            complaint += chunk
            log.info("exec plugin says", command=self.command, text=chunk.decode(errors="replace").strip())

    def _identity(self, output: bytes) -> Identity:
        try:
            answer = decode_json(_answers, output)
        except msgspec.DecodeError as error:
            raise self._error(f"it did not print an ExecCredential: {error}") from error
        if answer.kind != "ExecCredential" or answer.api_version != self._stanza.api_version:
            raise self._error(
                f"it printed {answer.api_version} {answer.kind} instead of {self._stanza.api_version} ExecCredential"
            )
        status = answer.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error("it printed only one of status.clientCertificateData and status.clientKeyData")
        if not status.token and not status.client_certificate_data:
            raise self._error("it printed neither status.token nor status.clientCertificateData")
        expiry = status.expiration_timestamp
        if expiry is not None and expiry.tzinfo is None:
            expiry = expiry.replace(tzinfo=UTC)
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = ClientCertificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        return Identity(f"Bearer {status.token}" if status.token else None, certificate, expiry)

    def _error(self, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self.origin}: exec plugin {self.command}: {problem}")
