"""Secrets that are not stored, and content in bounded size."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from trainer_dashboard.history.content import OBJECT_LIMIT, compressed, inflated, without_secrets
from trainer_dashboard.history.secret_forms import clean_text

REDACTED = "[redacted]"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        pytest.param("LEARNING_RATE", "0.1", "0.1", id="hyperparameter"),
        pytest.param("HF_TOKEN", "abc", REDACTED, id="token"),
        pytest.param("AWS_SECRET_ACCESS_KEY", "abc", REDACTED, id="access key"),
        pytest.param("WANDB_API_KEY", "abc", REDACTED, id="API key"),
        pytest.param("DB_PASSWORD", "abc", REDACTED, id="password"),
        pytest.param("PGPASSWORD", "abc", REDACTED, id="password of PostgreSQL"),
        pytest.param("MY_SECRET", "abc", REDACTED, id="secret"),
        pytest.param("AZURE_CREDENTIALS", "abc", REDACTED, id="credentials"),
        pytest.param("SENTRY_DSN", "abc", REDACTED, id="address with a key"),
        pytest.param("SLACK_WEBHOOK", "abc", REDACTED, id="webhook"),
        pytest.param("TOKENIZERS_PARALLELISM", "false", "false", id="tokenizer"),
        pytest.param("MAX_NEW_TOKENS", "512", "512", id="number of tokens"),
        pytest.param("URL", "https://me:abc@example.com/", f"https://me:{REDACTED}@example.com/", id="URL"),
        pytest.param("AWS_SESSION_TOKEN", "abc", REDACTED, id="token behind an n"),
        pytest.param("ADMIN_TOKEN", "abc", REDACTED, id="token behind min"),
        pytest.param("NOTION_API_TOKEN", "abc", REDACTED, id="token with words between"),
        pytest.param("TOKENIZER_HUB_TOKEN", "abc", REDACTED, id="token of a tokenizer"),
        pytest.param("SMTP_PASS", "abc", REDACTED, id="short password"),
        pytest.param("NUM_TRAIN_TOKENS", "9", "9", id="number of tokens with words between"),
        pytest.param("COMPASS", "north", "north", id="end of a word"),
        pytest.param("ANY", "hf_aBcDeFgHiJkLmNoP", REDACTED, id="known form"),
        pytest.param("ANY", "Bearer abcdefghijklmnopqrst", f"Bearer {REDACTED}", id="header"),
    ],
)
def test_variable(name: str, value: str, kept: str) -> None:
    """Values of variables are kept unless the name or the form says that they are secret."""
    job = {"spec": {"trainer": {"env": [{"name": name, "value": value}]}}}
    assert without_secrets(job)["spec"]["trainer"]["env"] == [{"name": name, "value": kept}]


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        pytest.param(
            ["train", "--token", "abc", "--lr", "1"], ["train", "--token", REDACTED, "--lr", "1"], id="option"
        ),
        pytest.param(["--hub-token=abc"], [f"--hub-token={REDACTED}"], id="with a value"),
        pytest.param(["sh -c 'x --api-key abc'"], [f"sh -c 'x --api-key {REDACTED}'"], id="in a script"),
        pytest.param(["export HF_TOKEN=abc; run"], [f"export HF_TOKEN={REDACTED} run"], id="assignment"),
        pytest.param(['export HF_TOKEN="a b"; run'], [f'export HF_TOKEN="{REDACTED}"; run'], id="quoted assignment"),
        pytest.param(['x --api-key "a b" --lr 1'], [f'x --api-key "{REDACTED}" --lr 1'], id="quoted value"),
        pytest.param(["x --password='a b' --lr 1"], [f"x --password='{REDACTED}' --lr 1"], id="quoted behind equals"),
        pytest.param([r'x --my-secret "a\"b" c'], [f'x --my-secret "{REDACTED}" c'], id="escaped quote"),
        pytest.param(["sh -c 'x --token ' y"], ["sh -c 'x --token ' y"], id="quote that closes"),
        pytest.param(["--max-steps", "10"], ["--max-steps", "10"], id="harmless"),
    ],
)
def test_command(command: list[str], kept: list[str]) -> None:
    """What is given to a program with an option for a secret is not kept."""
    assert without_secrets({"spec": {"command": command}})["spec"]["command"] == kept


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


@pytest.mark.parametrize(
    "part", ["--token", "-", "--a-token-", "token=", "token='", '--token "', '--token "\\', "hf_", "eyJ", "://a:"]
)
def test_linear_time(part: str) -> None:
    """A text of a tenant cannot make the search take long: a minute is the limit of every test, and this needs none."""
    assert clean_text(part * (200_000 // len(part)))


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
