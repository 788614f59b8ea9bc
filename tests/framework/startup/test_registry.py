"""The set of plugins."""

from __future__ import annotations

from typing import Any

import pytest

from trainer.framework.plugin_api import extension_points
from trainer.framework.plugin_api.extension_points import EXTENSION_POINTS, Plugin
from trainer.framework.startup.registry import HOOKS, Registry, defects_of
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

    async def watches(self) -> list[Any]:
        """Would have to be awaited."""
        return []


def test_holds_plugins() -> None:
    """Plugins of different types and names live side by side, in the order of their registration."""
    plugins: list[Any] = [Alpha(), Beta("beta"), Torch(), Gang(), Verifier()]
    registry = Registry(plugins)
    assert list(registry) == plugins


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
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
            [Twisted()],
            "plugin twisted cannot be used: biuld is not a hook; did you mean build? If not, call it _biuld; "
            "watches is async, but hooks only compute and are not awaited; write def watches",
            id="defects",
        ),
        pytest.param(
            [Nameless()],
            "the plugin tests.framework.startup.test_registry.Nameless: the name None cannot be used; it must consist",
            id="no name",
        ),
        pytest.param([None], "the plugin builtins.NoneType: the name None cannot be used", id="nothing"),
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


def test_a_refused_plugin_leaves_the_registry_as_it_was() -> None:
    """What was registered before stays usable."""
    registry = Registry([Torch()])
    with pytest.raises(ConfigurationError):
        registry.register(FasterTorch())
    assert [plugin.name for plugin in registry] == ["torch"]


def plugin(**members: Any) -> Any:
    """A plugin with these members."""
    return type("Sample", (), {"name": "sample", **members})()


def enforce(self: object, info: object, train_job: object) -> None:
    """A hook of two arguments."""


def test_all_extension_points_are_known() -> None:
    """Every protocol for plugins in the module is among the extension points, with at least one hook."""
    protocols = {
        member
        for member in vars(extension_points).values()
        if isinstance(member, type) and Plugin in member.__mro__ and member is not Plugin
    }
    assert set(EXTENSION_POINTS) == protocols
    assert set(HOOKS.values()) == protocols


def test_all_extension_points_are_explained() -> None:
    """A plugin can be written from the docstrings: each protocol, hook and attribute has one, and names its phase."""
    for protocol in EXTENSION_POINTS:
        assert (protocol.__doc__ or "").startswith(("Startup:", "PreExecution:", "Build", "PostExecution:"))
        assert all(getattr(protocol, name).__doc__ for name in vars(protocol) if not name.startswith("_"))


@pytest.mark.parametrize(
    "members",
    [
        pytest.param({"build": enforce}, id="as declared"),
        pytest.param({"build": enforce, "rebuild": enforce}, id="method like a hook that is there"),
        pytest.param({"build": enforce, "token": property(lambda _: 1 / 0)}, id="property that raises"),
    ],
)
def test_good_plugins(members: dict[str, Any]) -> None:
    """What works is not complained about."""
    assert not list(defects_of(plugin(**members)))


async def asynchronous(self: object, info: object, train_job: object) -> None:
    """A hook that would have to be awaited."""


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        pytest.param({}, "it has no hook, so it would never be called; give it one of watches, validate,", id="none"),
        pytest.param(
            {"enforce_ml_polcy": enforce},
            "enforce_ml_polcy is not a hook; did you mean enforce_ml_policy? If not, call it _enforce_ml_polcy",
            id="typo",
        ),
        pytest.param(
            {"build": enforce, "validates": classmethod(enforce)}, "did you mean validate?", id="class method"
        ),
        pytest.param(
            {"build": asynchronous},
            "build is async, but hooks only compute and are not awaited; write def build",
            id="async",
        ),
        pytest.param(
            {"enforce_ml_policy": enforce},
            "enforce_ml_policy needs ml_policy_sources beside it; add ml_policy_sources = frozenset(...)",
            id="no sources",
        ),
    ],
)
def test_defects(members: dict[str, Any], problem: str) -> None:
    """What would never be called, or fail when it is, is reported with the remedy, once."""
    (defect,) = defects_of(plugin(**members))

    assert problem in defect
