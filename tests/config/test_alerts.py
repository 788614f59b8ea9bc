"""Alerts of config/prometheus: they ask for what exists, fire when they should, and tell people what to do."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml

from hack.release.source import RUNBOOKS
from tests.config.kustomized import CONFIG, kustomize, of_kind, rendered
from tests.config.promql import question
from tests.config.series import groups, problems, rules
from tests.promtool import needs_promtool, promtool
from trainer.kube.objects import Object
from trainer.kube.quantity import parse_quantity

TESTS = Path(__file__).with_name("alerts.yaml")
ALERTS = [rule for rule in rules() if "alert" in rule]
OPERATE = (CONFIG.parent / "docs" / "operate.md").read_text(encoding="utf-8")
OVERLAY = re.search(r"```yaml\n((?:(?!```)[\s\S])*runbook_url[\s\S]*?)```", OPERATE)
"""The kustomization of docs/operate.md that has alerts link to another page."""


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_metrics_exist(rule: dict[str, str]) -> None:
    """The manager, or a recording rule, has every metric and label that a rule asks for."""
    assert problems(rule["expr"]) == []


def test_recording_rules_are_used() -> None:
    """A recorded series that nothing queries costs something at every scrape."""
    asked = {name for rule in ALERTS for name in question(rule["expr"]).metrics}
    assert {rule["record"] for rule in rules() if "record" in rule} <= asked


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_people_learn_what_to_do(rule: dict[str, dict[str, str]]) -> None:
    """An alert has a severity, a summary in one line, a description, and a page; templates use labels that are left."""
    annotations = rule["annotations"]
    assert set(rule["labels"]) == {"severity"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(annotations) == {"summary", "description", "runbook_url"}
    assert annotations["summary"].endswith(".")
    assert len(annotations["summary"]) <= 100
    assert annotations["runbook_url"] == f"{RUNBOOKS}#{str(rule['alert']).lower()}"
    used = set(re.findall(r"\$labels\.(\w+)", " ".join(annotations.values())))
    assert used <= {label for each in fired(str(rule["alert"])) for label in each}


def test_links_to_a_page_of_ones_own(tmp_path: Path) -> None:
    """The kustomization that operate.md shows changes the page of all links and keeps their headings."""
    assert OVERLAY is not None
    base = os.path.relpath(CONFIG / "prometheus", tmp_path.resolve())
    text = OVERLAY.group(1).replace("../trainer/config/prometheus", base)
    (tmp_path / "kustomization.yaml").write_text(text)
    (page,) = re.findall(r"https://\S+", text)

    changed = [
        rule["annotations"]["runbook_url"]
        for obj in of_kind(kustomize(tmp_path), "PrometheusRule")
        for group in obj["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]

    assert changed == [rule["annotations"]["runbook_url"].replace(RUNBOOKS, page) for rule in ALERTS]
    assert page != RUNBOOKS


def fired(alert: str) -> list[dict[str, str]]:
    """The labels with which an alert fires in its tests."""
    return [each["exp_labels"] for check in checks() if check["alertname"] == alert for each in check["exp_alerts"]]


@cache
def checks() -> list[Object]:
    """All that is expected of alerts in their tests."""
    document = yaml.load(TESTS.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return [check for test in document["tests"] for check in test["alert_rule_test"]]


def test_every_alert_is_tested() -> None:
    """There is a test in which it fires with each of its severities, and one in which it does not fire."""
    expected = Counter((str(rule["alert"]), rule["labels"]["severity"]) for rule in ALERTS)
    assert {(name, labels["severity"]) for name, _ in expected for labels in fired(name)} == set(expected)
    assert {check["alertname"] for check in checks() if not check["exp_alerts"]} == {name for name, _ in expected}


@needs_promtool
def test_alerts(tmp_path: Path) -> None:
    """promtool finds the rules in order, and each alert fires when it should and not otherwise."""
    plain = [{**group, "rules": [without_annotations(rule) for rule in group["rules"]]} for group in groups()]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": plain}, sort_keys=False))
    (tmp_path / "alerts.yaml").write_text(TESTS.read_text(encoding="utf-8"))

    assert promtool("test", "rules", "alerts.yaml", directory=tmp_path) == (
        0,
        "Unit Testing:  alerts.yaml\n  SUCCESS\n\n",
    )


def without_annotations(rule: dict[str, str]) -> dict[str, str]:
    """Its condition and labels alone."""
    return {key: value for key, value in rule.items() if key != "annotations"}


@needs_promtool
def test_templates(tmp_path: Path) -> None:
    """Prometheus parses expressions and the templates of annotations."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups()}, sort_keys=False))

    code, answer = promtool("check", "rules", str(tmp_path / "rules.yaml"))

    assert code == 0, answer
    assert f"{len(rules())} rules found" in answer


def test_the_memory_limit_is_that_of_the_deployment() -> None:
    """The alert about memory knows the limit that ships."""
    (deployment,) = of_kind(rendered("manager"), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (rule,) = (rule for rule in ALERTS if rule["alert"] == "TrainerMemoryHigh")
    _, _, factors = rule["expr"].partition(">")
    share, *rest = (float(factor) for factor in factors.split("*"))
    assert share < 1
    assert rest[0] * rest[1] * rest[2] == parse_quantity(container["resources"]["limits"]["memory"])
