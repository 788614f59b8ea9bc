"""Webhooks: one entry of a webhook configuration, ready to be matched and called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from trainer.kube.objects import name_of
from trainer.kube.selectors import LabelSelector
from trainer_devcluster.apiserver.admission.conditions import Condition
from trainer_devcluster.apiserver.admission.rules import Rule
from trainer_devcluster.apiserver.webhooks.client import ClientConfig

if TYPE_CHECKING:
    from trainer.kube.objects import Object
    from trainer.kube.resource import Resource
    from trainer_devcluster.apiserver.admission.attributes import Endpoint

_WITHOUT_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration."""

    configuration: str
    """Name of the configuration."""
    index: int
    """Its place there."""
    name: str
    client: ClientConfig
    rules: tuple[Rule, ...]
    equivalent: bool
    """Whether a request for another version of a resource counts as one for the version in the rules."""
    fails_open: bool
    """Whether requests go on when it cannot be called."""
    timeout: int
    """Seconds."""
    supports_dry_run: bool
    reinvocable: bool
    """Whether it is called again when a webhook after it has changed the object."""
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, configuration: str, index: int, entry: Object) -> Webhook:
        """Read an entry that is defaulted and valid."""
        conditions = entry.get("matchConditions") or ()
        return cls(
            configuration=configuration,
            index=index,
            name=entry["name"],
            client=ClientConfig.of(entry["clientConfig"]),
            rules=tuple(map(Rule.of, entry.get("rules") or ())),
            equivalent=entry["matchPolicy"] == "Equivalent",
            fails_open=entry["failurePolicy"] == "Ignore",
            timeout=entry["timeoutSeconds"],
            supports_dry_run=entry["sideEffects"] in _WITHOUT_SIDE_EFFECTS,
            reinvocable=entry.get("reinvocationPolicy") == "IfNeeded",
            namespace_selector=LabelSelector.from_object(entry["namespaceSelector"]),
            object_selector=LabelSelector.from_object(entry["objectSelector"]),
            conditions=tuple(Condition.compile(each["name"], each["expression"]) for each in conditions),
        )

    def wants(self, endpoint: Endpoint, resource: Resource) -> bool:
        """Whether one of its rules means the request, its resource taken for `resource`."""
        return any(rule.matches(endpoint, resource) for rule in self.rules)


def webhooks_of(configuration: Object) -> list[Webhook]:
    """The webhooks of a stored configuration, in their order."""
    name = name_of(configuration)
    return [Webhook.of(name, index, entry) for index, entry in enumerate(configuration.get("webhooks") or ())]
