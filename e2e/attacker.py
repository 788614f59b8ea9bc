"""A program of the tests: attacks the managers with what a tenant, or anybody in the network, can send.

`python -m e2e.attacker SERVER NAMESPACE SECONDS WEBHOOK_URL...`, with the token of the tenant in ATTACKER_TOKEN. All
attacks run at the same time, each as a loop of its own. At the end the program prints, as JSON, how many answers of
each code it got, by attack.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

import aiohttp

from e2e import attack_objects as objects

TOKEN = "ATTACKER_TOKEN"
PAUSE = 0.1
"""Seconds between two rounds of an attack on the webhook port."""
API_PAUSE = 1.0
"""Seconds between two requests of an attack that goes through the API server. The dev cluster's is one process in
Python, which shares the machine with all others: faster attacks would show its limits, and not the managers'."""
FLOOD_PAUSE = 0.2
"""The same, for small objects. A TrainJob whose runtime does not exist costs the dev cluster 22 ms of CPU, with both
webhooks, status and event: 2,050 of them in a minute, and nothing else, would take two thirds of its only process."""
SLOW_PAUSE = 5.0
BODIES_PAUSE = 5.0
BODIES_AT_ONCE = 17
CONFIG_MAPS = 60


@dataclass(slots=True)
class Attacker:
    """Sends requests until its time is over, and counts the answers."""

    session: aiohttp.ClientSession
    server: str
    namespace: str
    webhooks: list[str]
    end: float
    answers: Counter[str] = field(default_factory=Counter)

    async def repeat(self, attack: Callable[[int], Coroutine[None, None, None]], pause: float = PAUSE) -> None:
        """Repeat one attack with the number of the round, with a pause between two rounds."""
        for number in itertools.count():
            if time.monotonic() > self.end:
                return
            await attack(number)
            await asyncio.sleep(pause)

    async def send(self, attack: str, url: str, body: bytes, method: str = "POST") -> bytes:
        """Send one request, count its answer and return it; a connection that breaks counts as an answer."""
        headers = {"Content-Type": "application/json"}
        if url.startswith(self.server):
            headers["Authorization"] = f"Bearer {os.environ[TOKEN]}"
        try:
            async with self.session.request(method, url, data=body, headers=headers) as answer:
                content = await answer.read()
                self.answers[f"{attack}: {answer.status}"] += 1
                return content
        except (aiohttp.ClientError, TimeoutError) as error:
            self.answers[f"{attack}: {type(error).__name__}"] += 1
            return b""

    async def write(self, attack: str, obj: objects.Object, *, query: str = "") -> bytes:
        """Create an object in the tenant's namespace."""
        return await self.send(
            attack, f"{self.collection(obj['kind'], obj['apiVersion'])}{query}", objects.encoded(obj)
        )

    def collection(self, kind: str, api_version: str) -> str:
        """The URL of all objects of a kind in the tenant's namespace."""
        prefix = "api" if api_version == "v1" else "apis"
        return f"{self.server}/{prefix}/{api_version}/namespaces/{self.namespace}/{kind.lower()}s"

    async def review(self, attack: str, number: int, body: bytes, verb: str = "validate") -> None:
        """Ask one of the replicas for a review, past the API server."""
        await self.send(attack, self.webhooks[number % len(self.webhooks)] + objects.REVIEW_PATHS[verb], body)

    async def store_runtimes(self) -> None:
        """Store runtimes whose builds are expensive: with validation, and with the label that switches it off."""
        for labels in ({}, objects.UNCHECKED):
            for runtime in objects.expensive_runtimes(labels):
                await self.write("runtime", runtime)

    async def refused_train_job(self, number: int) -> None:
        """Create a TrainJob that is larger than the schema allows, or has a number that no schema allows."""
        await self._train_job("refused TrainJob", objects.refused_train_jobs(), number)

    async def largest_train_job(self, number: int) -> None:
        """Create a TrainJob that is exactly as large as the schema allows, so that it is checked, built and stored."""
        await self._train_job("largest TrainJob", objects.largest_train_jobs(), number)

    async def _train_job(self, attack: str, made: list[objects.Object], number: int) -> None:
        """Create one of these, in every other round by dry run."""
        obj = made[number % len(made)]
        obj["metadata"]["name"] += f"-{number}"
        await self.write(attack, obj, query="?dryRun=All" if number // len(made) % 2 == 0 else "")

    async def built_on_stored(self, number: int) -> None:
        """Create a TrainJob on each of the stored runtimes."""
        name = objects.STORED_RUNTIMES[number % len(objects.STORED_RUNTIMES)]
        await self.write("TrainJob on stored runtime", objects.train_job(f"built-{number}", runtime=name))

    async def invented_runtime(self, number: int) -> None:
        """Create a TrainJob whose runtime does not exist."""
        await self.write("invented runtime", objects.train_job(f"invented-{number}", runtime=f"invented-{number}"))

    async def forged_snapshot(self, number: int) -> None:
        """Create a TrainJob whose runtime does not exist, and what says that it was built on a privileged one."""
        name = f"forged-{number}"
        content = await self.write("TrainJob to forge", objects.train_job(name, runtime=name))
        train_job = json.loads(content or b"{}")
        if train_job.get("kind") == "TrainJob":
            for obj in objects.forged(train_job):
                await self.write(f"forged {obj['kind']}", obj)

    async def root_certificate(self, number: int) -> None:
        """Delete the ConfigMap that all pods of the namespace mount."""
        await self.send("root certificate", f"{self.collection('ConfigMap', 'v1')}/kube-root-ca.crt", b"", "DELETE")

    async def event(self, number: int) -> None:
        """Create an event that seems to be about one of the tenant's Jobs."""
        await self.write("event", objects.event(number, self.namespace))

    async def config_map(self, number: int) -> None:
        """Create ConfigMaps that look like snapshots of runtimes, then change them again and again."""
        obj = objects.config_map(f"filler-{number % CONFIG_MAPS}", number)
        if number < CONFIG_MAPS:
            await self.write("ConfigMap", obj)
        else:
            url = f"{self.collection('ConfigMap', 'v1')}/{obj['metadata']['name']}"
            await self.send("ConfigMap", url, objects.encoded(obj), "PUT")

    async def unknown_fields(self, number: int) -> None:
        """Ask for a review of 2.7 MB with 100,000 unknown fields, of either webhook."""
        await self.review("unknown fields", number, objects.unknown_fields(), ("validate", "mutate")[number // 2 % 2])

    async def forged_update(self, number: int) -> None:
        """Ask for a review of an update from one large valid TrainJob to another."""
        await self.review("forged update", number, objects.forged_update())

    async def long_kind(self, number: int) -> None:
        """Ask for a review of a kind that looks like tokens to a redactor."""
        await self.review("long kind", number, objects.long_kind())

    async def nested_lists(self, number: int) -> None:
        """Ask for a review of an object that takes many times its size in memory."""
        await self.review("nested lists", number, objects.nested_lists(), "mutate")

    async def large_bodies(self, number: int) -> None:
        """Send bodies of 3 MB with an object and an old object of 1.5 MB each, all at once."""
        body = objects.large_update()
        await asyncio.gather(*(self.review("large body", number, body) for _ in range(BODIES_AT_ONCE)))


async def main(server: str, namespace: str, seconds: float, webhooks: list[str]) -> None:
    """Run all attacks at the same time."""
    connector = aiohttp.TCPConnector(limit=0, ssl=False)
    timeout = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        attacker = Attacker(session, server, namespace, webhooks, time.monotonic() + seconds)
        await attacker.store_runtimes()
        sys.stdout.write("attacking\n")
        sys.stdout.flush()
        async with asyncio.TaskGroup() as attacks:
            for attack in (
                attacker.refused_train_job,
                attacker.largest_train_job,
                attacker.built_on_stored,
                attacker.config_map,
            ):
                attacks.create_task(attacker.repeat(attack, API_PAUSE))
            for attack in (attacker.forged_snapshot, attacker.root_certificate):
                attacks.create_task(attacker.repeat(attack, SLOW_PAUSE))
            for attack in (attacker.invented_runtime, attacker.event):
                attacks.create_task(attacker.repeat(attack, FLOOD_PAUSE))
            attacks.create_task(attacker.repeat(attacker.long_kind))
            for attack in (attacker.unknown_fields, attacker.forged_update, attacker.nested_lists):
                attacks.create_task(attacker.repeat(attack, 1))
            attacks.create_task(attacker.repeat(attacker.large_bodies, BODIES_PAUSE))
    sys.stdout.write(json.dumps(attacker.answers) + "\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]))
