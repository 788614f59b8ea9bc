"""Plugins of installed packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.framework.plugin_package import GREETING, installed
from tests.framework.samples import env_of, runtime, train_job
from tests.framework.static_reader import StaticReader
from trainer.framework.pipeline import Pipeline
from trainer.framework.startup.discovery import (
    PluginsConfiguration,
    available_plugins,
    bundled_plugins,
    load_plugins,
    make_registry,
)
from trainer.framework.startup.registry import Registry
from trainer.kube.errors import ConfigurationError
from trainer.plugins import BUILT_IN

KNOWN = ", ".join(f'"{name}"' for name in sorted(BUILT_IN))


def discovered(**configuration: Any) -> Registry:
    """All plugins that are installed and enabled."""
    settings = PluginsConfiguration.from_object(configuration, strict=True)
    return make_registry(load_plugins(available_plugins(BUILT_IN), settings), StaticReader())


def names(registry: Registry) -> list[str]:
    """Their names, in order."""
    return [plugin.name for plugin in registry]


def complaint(**configuration: Any) -> str:
    """Why the manager does not start."""
    with pytest.raises(ConfigurationError) as caught:
        discovered(**configuration)
    return str(caught.value)


def test_built_in_plugins() -> None:
    """Those of this package are there without any configuration, under their own names, ordered by name."""
    assert names(discovered()) == sorted(BUILT_IN)


def test_a_third_party_plugin_takes_part(tmp_path: Path) -> None:
    """A package that announces a plugin is all it takes; its settings come from the configuration."""
    with installed(tmp_path, greeting=(GREETING, "Greeting")):
        pipeline = Pipeline(discovered(configuration={"greeting": {"text": "hi ", "times": 2}}))
    (jobset,) = [component.object for component in pipeline.build(train_job(), runtime())]
    (container,) = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    assert env_of(container) == {"GREETING": "hi hi "}


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        pytest.param({}, sorted([*BUILT_IN, "greeting"]), id="all"),
        pytest.param({"disabled": ["greeting", "jax"]}, sorted(BUILT_IN.keys() - {"jax"}), id="without some"),
        pytest.param({"disabled": ["greeting"], "configuration": {"greeting": {}}},
                     sorted(BUILT_IN), id="configured for later"),
    ],
)  # fmt: skip
def test_enabled_and_disabled(tmp_path: Path, configuration: dict[str, Any], expected: list[str]) -> None:
    """The configuration chooses among what is installed."""
    with installed(tmp_path, greeting=(GREETING, "Greeting")):
        assert names(discovered(**configuration)) == expected


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        pytest.param(
            {"disabled": ["jax", "slurm"]},
            f'plugins.disabled[1]: Unsupported value: "slurm": supported values: {KNOWN}',
            id="disabled",
        ),
        pytest.param(
            {"disabled": ["jobset"]},
            "plugins: without a plugin that is a TerminalCondition no TrainJob would ever end; "
            "enable jobset, or another one",
            id="nothing builds",
        ),
        pytest.param({"enabled": []}, "plugins: without a plugin that is a ComponentBuilder", id="nothing at all"),
        pytest.param(
            {"configuration": {"torch": {"numNodes": 2}}},
            "plugins.configuration[torch]: plugin torch (built in) takes no configuration; remove it",
            id="takes no configuration",
        ),
    ],
)
def test_wrong_configuration(configuration: dict[str, Any], message: str) -> None:
    """Names that nobody has, and settings without effect, stop the start and name the field."""
    assert complaint(**configuration).startswith(message)


BROKEN = "import no_such_library\n"


@pytest.mark.parametrize(
    ("source", "attribute", "configuration", "message"),
    [
        pytest.param(
            BROKEN,
            "Greeting",
            {},
            "plugin greeting (acme-trainer 1.2.0) cannot be imported: ModuleNotFoundError: No module named "
            "'no_such_library'; repair the package, or add greeting to plugins.disabled of the configuration",
            id="import fails",
        ),
        pytest.param(
            "thing = 5",
            "thing",
            {},
            "plugin greeting (acme-trainer 1.2.0): the entry point must be a class or a function, got 5",
            id="no factory",
        ),
        pytest.param(
            GREETING.replace("settings = ", "raise ValueError('the\\nmoon is missing')\n        settings = "),
            "Greeting",
            {},
            "plugin greeting (acme-trainer 1.2.0) cannot be made: ValueError: the moon is missing",
            id="factory fails",
        ),
        pytest.param(
            "def make(context):\n    pass",
            "make",
            {},
            "the plugin builtins.NoneType: the name None cannot be used; it must consist of lower-case letters, digits "
            "and -, with a letter or digit at both ends, at most 63 "
            "(it comes from acme-trainer 1.2.0)",
            id="makes nothing",
        ),
        pytest.param(
            GREETING.replace('"greeting"', '"hello"'),
            "Greeting",
            {},
            "plugin greeting (acme-trainer 1.2.0): the plugin calls itself 'hello', its entry point 'greeting'; "
            "give both the same name, by which it is configured",
            id="other name",
        ),
        pytest.param(
            GREETING,
            "Greeting",
            {"greeting": {"times": 0}},
            "plugins.configuration[greeting].times: Invalid value: 0: must be at least 1",
            id="setting",
        ),
    ],
)
def test_a_bad_plugin_stops_the_start(
    tmp_path: Path, source: str, attribute: str, configuration: dict[str, Any], message: str
) -> None:
    """A plugin that cannot be imported, made, configured or used is named with its origin, in one line."""
    with installed(tmp_path, greeting=(source, attribute)):
        text = complaint(configuration=configuration)
    assert text.startswith(message)
    assert "\n" not in text


def test_a_disabled_plugin_is_not_imported(tmp_path: Path) -> None:
    """A package that does not work stops nothing once its plugin is disabled."""
    with installed(tmp_path, greeting=(BROKEN, "Greeting")):
        assert names(discovered(disabled=["greeting"])) == sorted(BUILT_IN)


def test_a_plugin_may_replace_a_built_in_one(tmp_path: Path) -> None:
    """Another plugin can implement a policy whose built-in plugin is disabled."""
    source = GREETING.replace("frozenset()", 'frozenset({"jax"})')
    with installed(tmp_path, greeting=(source, "Greeting")):
        assert "greeting" in names(discovered(disabled=["jax"]))


def test_two_packages_with_one_name(tmp_path: Path) -> None:
    """Two plugins of one name cannot be distinguished, so the message names both packages."""
    with (
        installed(tmp_path / "a", greeting=(GREETING, "Greeting")),
        installed(tmp_path / "b", package="other", version="2", greeting=(GREETING, "Greeting")),
    ):
        text = complaint()
    assert text.startswith("there are two plugins called greeting: one is of ")
    assert text.endswith("; uninstall or rename one of them")
    assert "of acme-trainer 1.2.0" in text
    assert "of other 2" in text


def test_a_built_in_name_is_taken(tmp_path: Path) -> None:
    """A package cannot quietly take the place of a built-in plugin."""
    with installed(tmp_path, torch=(GREETING, "Greeting")):
        assert complaint() == (
            "there are two plugins called torch: one is built in, one of acme-trainer 1.2.0; "
            "uninstall or rename one of them"
        )


def test_bundled_plugins(tmp_path: Path) -> None:
    """What is installed besides does not show among the plugins of this package."""
    with installed(tmp_path, greeting=(GREETING, "Greeting")):
        assert [plugin.name for plugin in bundled_plugins(BUILT_IN)] == sorted(BUILT_IN)


def test_errors() -> None:
    """Every unknown or repeated name is reported with its place."""
    settings = PluginsConfiguration(enabled=["a", "x", "a"], disabled=["b", "a"], configuration={"c": {}, "y": {}})

    assert [str(error) for error in settings.errors("cba")] == [
        'plugins.enabled[1]: Unsupported value: "x": supported values: "a", "b", "c"',
        'plugins.enabled[2]: Duplicate value: "a"',
        'plugins.disabled[1]: Duplicate value: "a"',
        'plugins.configuration: Unsupported value: "y": supported values: "a", "b", "c"',
    ]
