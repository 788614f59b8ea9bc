"""The set of plugins."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.startup.registry import Registry
from trainer.kube.errors import ConfigurationError


class Alpha:
    """A plugin."""

    def __init__(self, name: Any = "alpha") -> None:
        self.name = name

    def validate(self, info: object, old: object, new: object) -> list[Any]:
        """See `CustomValidation`."""
        return []


class Beta(Alpha):
    """Another one."""


class Torch:
    """Serves a policy."""

    name = "torch"
    ml_policy_sources = frozenset({"torch"})

    def enforce_ml_policy(self, info: object, train_job: object) -> None:
        """See `EnforceMLPolicy`."""


class FasterTorch(Torch):
    """Serves it, too."""

    name = "faster-torch"


class Pytorch(Torch):
    """Serves a policy that does not exist."""

    name = "pytorch"
    ml_policy_sources = frozenset({"pytorch"})


class Gang:
    """Serves a policy."""

    name = "gang"
    pod_group_policy_sources = frozenset({"coscheduling"})

    def enforce_pod_group_policy(self, info: object, train_job: object) -> None:
        """See `EnforcePodGroupPolicy`."""


class OtherGang(Gang):
    """Serves it, too."""

    name = "other-gang"


class Verifier:
    """Reports a condition."""

    name = "verifier"
    condition_types = frozenset({"acme.com/DataVerified"})

    def train_job_status(self, train_job: object) -> None:
        """See `TrainJobStatus`."""


class OtherVerifier(Verifier):
    """Reports it, too."""

    name = "other-verifier"


class Usurper(Verifier):
    """Reports a condition of the controller, and one that no server accepts."""

    name = "usurper"
    condition_types = frozenset({"Created", "data verified"})


class Nameless:
    """A plugin that cannot be configured."""

    def build(self, info: object, train_job: object) -> list[Any]:
        """See `ComponentBuilder`."""
        return []


class Twisted:
    """A plugin with two defects."""

    name = "twisted"

    def biuld(self) -> None:
        """A slip of the pen."""

    def watches(self, everything: object) -> list[Any]:
        """Takes an argument."""
        return []


def test_holds_plugins() -> None:
    """Plugins of different types and names live side by side, in the order of their registration."""
    plugins: list[Any] = [Alpha(), Beta("beta"), Torch(), Gang(), Verifier()]
    registry = Registry(plugins)
    assert list(registry) == plugins
    assert len(registry) == 5


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        pytest.param([Alpha(), Alpha("other")], "the plugin other is registered twice", id="type"),
        pytest.param([Alpha(), Beta("alpha")], "there are two plugins called alpha; rename one of them", id="name"),
        pytest.param(
            [Torch(), FasterTorch()],
            "plugin faster-torch cannot be used: plugin torch serves spec.mlPolicy.torch already; "
            "disable one of the two",
            id="ML policy",
        ),
        pytest.param(
            [Gang(), OtherGang()],
            "plugin other-gang cannot be used: plugin gang serves spec.podGroupPolicy.coscheduling already; "
            "disable one of the two",
            id="pod group policy",
        ),
        pytest.param(
            [Verifier(), OtherVerifier()],
            "plugin other-verifier cannot be used: plugin verifier reports condition acme.com/DataVerified already; "
            "disable one of the two",
            id="condition",
        ),
        pytest.param(
            [Usurper()],
            "plugin usurper cannot be used: condition_types names Created, which the controller sets itself; "
            "choose another name; condition_types names 'data verified'; write a CamelCase word, or one after a "
            "domain: acme.com/Ready",
            id="conditions that cannot be",
        ),
        pytest.param(
            [Pytorch()],
            "plugin pytorch cannot be used: ml_policy_sources names pytorch, which runtimes do not have; "
            "they have jax, mpi, tensorflow, torch, xgboost",
            id="unknown policy",
        ),
        pytest.param(
            [Twisted()],
            "plugin twisted cannot be used: biuld is not a hook; did you mean build? If not, call it _biuld; "
            "watches takes other arguments than it is called with; write def watches(self)",
            id="defects",
        ),
        pytest.param(
            [Nameless()],
            'the plugin tests.framework.startup.test_registry.Nameless has no name; add name = "..." to the class',
            id="no name",
        ),
        pytest.param([None], "the plugin builtins.NoneType has no name", id="nothing"),
        pytest.param(
            [Torch],
            "the plugin tests.framework.startup.test_registry.Torch is a class; make an object of it",
            id="class",
        ),
    ],
)
def test_refused(plugins: list[Any], message: str) -> None:
    """What cannot work stops the start, and the message names plugin and remedy."""
    with pytest.raises(ConfigurationError) as caught:
        Registry(plugins)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ["", "Torch", "my plugin", "-a", "a-", "a.b", "a_b", "x" * 64, 5])
def test_bad_names(name: Any) -> None:
    """A name is like a DNS label."""
    with pytest.raises(ConfigurationError, match=r"Alpha: the name .* cannot be used; it must consist of lower-case"):
        Registry([Alpha(name)])


@pytest.mark.parametrize("name", ["a", "torch-2", "x" * 63, "0"])
def test_good_names(name: str) -> None:
    """A name is like a DNS label."""
    assert [plugin.name for plugin in Registry([Alpha(name)])] == [name]


def test_a_refused_plugin_leaves_the_registry_as_it_was() -> None:
    """What was registered before stays usable."""
    registry = Registry([Torch()])
    with pytest.raises(ConfigurationError):
        registry.register(FasterTorch())
    assert [plugin.name for plugin in registry] == ["torch"]
