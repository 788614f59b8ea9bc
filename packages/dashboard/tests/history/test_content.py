"""Secrets that are not stored, and content in bounded size."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from trainer_dashboard.history.content import OBJECT_LIMIT, compressed, inflated, without_secrets

REDACTED = "[redacted]"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        pytest.param("LEARNING_RATE", "0.1", "0.1", id="hyperparameter"),
        pytest.param("HF_TOKEN", "abc", REDACTED, id="token"),
        pytest.param("PGPASSWORD", "abc", REDACTED, id="password of PostgreSQL"),
        pytest.param("SMTP_PASS", "abc", REDACTED, id="short password"),
        pytest.param("AZURE_CREDENTIALS", "abc", REDACTED, id="credentials"),
        pytest.param("SENTRY_DSN", "abc", REDACTED, id="address with a key"),
        pytest.param("SLACK_WEBHOOK", "abc", REDACTED, id="webhook"),
        pytest.param("TOKENIZERS_PARALLELISM", "false", "false", id="tokenizer"),
        pytest.param("AWS_SESSION_TOKEN", "abc", REDACTED, id="token behind an n"),
        pytest.param("ADMIN_TOKEN", "abc", REDACTED, id="token behind min"),
        pytest.param("TOKENIZER_HUB_TOKEN", "abc", REDACTED, id="token of a tokenizer"),
        pytest.param("NUM_TRAIN_TOKENS", "9", "9", id="number of tokens with words between"),
    ],
)
def test_variable(name: str, value: str, kept: str) -> None:
    """Values of variables are kept unless the name or the form says that they are secret."""
    job = {"spec": {"trainer": {"env": [{"name": name, "value": value}]}}}
    assert without_secrets(job)["spec"]["trainer"]["env"] == [{"name": name, "value": kept}]


def test_references_stay() -> None:
    """References to Secrets stay, and what kubectl notes of the whole object goes."""
    variable = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "a": "b"}
    obj = {
        "metadata": {"annotations": annotations, "managedFields": []},
        "spec": {"env": [variable], "secretName": "hub"},
    }
    assert without_secrets(obj) == {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {"env": [variable], "secretName": "hub"},
    }


def test_large_objects() -> None:
    """Of an object that is too large its metadata and status are kept, and of hostile ones next to nothing."""
    large = "x" * OBJECT_LIMIT
    obj: dict[str, Any] = {
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": {"a": large},
        "status": {"state": "b"},
    }
    assert without_secrets(obj) == {"kind": "TrainJob", "metadata": {"name": "a"}, "status": {"state": "b"}}
    assert without_secrets(obj | {"status": {"a": large}}) == {"kind": "TrainJob"}
    deep: Any = "end"
    for _ in range(500):
        deep = [deep]
    assert REDACTED in str(without_secrets({"metadata": {}, "spec": deep}))


def test_compressed() -> None:
    """What was compressed is there again; damage and bombs are errors."""
    assert inflated(compressed({"a": [1, 2.5, "é"]})) == {"a": [1, 2.5, "é"]}
    with pytest.raises(ValueError, match="damaged"):
        inflated(b"nonsense")
    with pytest.raises(ValueError, match="larger than"):
        inflated(zlib.compress(b"0" * (65 * 1024 * 1024)))


def test_config_map() -> None:
    """Entries of a ConfigMap, which may be variables, are kept as those are, and nothing binary is."""
    data = {
        "hostfile": "demo-0 slots=1",
        "auth.py": "pass",
        "GITHUB_PAT": "abc",
        "AWS_SECRET": "abc",
        "DB_PASSWORD": "abc",
    }
    obj = {"kind": "ConfigMap", "metadata": {"name": "a"}, "data": data, "binaryData": {"store": "YWJj"}}
    hidden = dict.fromkeys(("GITHUB_PAT", "AWS_SECRET", "DB_PASSWORD"), REDACTED)
    assert without_secrets(obj) == obj | {"data": data | hidden, "binaryData": {"store": REDACTED}}
    assert without_secrets(obj | {"data": None, "binaryData": "x"})["binaryData"] == "x"
