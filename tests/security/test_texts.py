"""Texts that are hardly any, in everything that enters: each is taken, or refused with a sentence that can be shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import pytest

from trainer.api.invalid_object import InvalidObjectError
from trainer.api.submitted_object import text_errors
from trainer.framework.plugin_api.errors import BuildError
from trainer.framework.runtimes.runtimes import open_snapshot
from trainer.kube.rest.failures import answer_error
from trainer.kube.webhook.review import AdmissionReview, ReviewError
from trainer.kubernetes_yaml import YamlError
from trainer.kubernetes_yaml import parse as parse_yaml
from trainer.progress.message_reader import MessageReader
from trainer.progress.protocol import RejectedMessageError
from trainer.progress.push_request import parse_push
from trainer.progress.report import TAG
from trainer.v1alpha1.status import EXTENSION, decode_status

VALUES: Final[dict[str, bytes]] = {
    "half of a surrogate pair": rb'"\ud800"',
    "the other half": rb'"\udc00x"',
    "a surrogate in bytes": b'"\xed\xa0\x80"',
    "no UTF-8": b'"\xff"',
    "NUL": rb'"\u0000"',
    "NUL in bytes": b'"\x00"',
    "many digits": b"9" * 5000,
    "a huge exponent": b"1e999",
    "NaN": b"NaN",
    "infinity": b"-Infinity",
    "depth": b"[" * 20_000,
    "depth that ends": b"[" * 3000 + b"]" * 3000,
    "depth that is decoded": b"[" * 700 + b"]" * 700,
    "objects in objects": b'{"a":' * 700 + b"1" + b"}" * 700,
    "cut off": b'"abc',
    "nothing": b"",
}


def webhook(value: bytes) -> None:
    """A review with the value in its object and as the name of a field."""
    for member in (b'"a":' + value, value + b":1", b'"metadata":{"name":' + value + b"}"):
        AdmissionReview.decode(
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE",'
            b'"kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"},'
            b'"object":{' + member + b"}}}"
        )


def post(value: bytes) -> None:
    """A post of progress; what is written afterwards can be encoded."""
    time = b'"lastUpdatedTime":"2026-01-02T10:00:00Z"'
    for member in (
        b'"progressPercentage":' + value,
        b'"metrics":[{"name":' + value + b',"value":"1"}]',
        b'"x":' + value,
    ):
        for body in (b'{"trainerStatus":{' + member + b"," + time + b"}}", b"{" + member + b"}"):
            msgspec.json.encode(parse_push(body).push.to_object())


def log_line(value: bytes) -> None:
    """A message in a log, whatever it is about."""
    errors: list[RejectedMessageError] = []
    for member in (
        b'"currentStep":' + value,
        b'"trainMetrics":{"a":' + value + b"}",
        b'"trainMetrics":{' + value + b":1}",
    ):
        for prefix in (b"", value, b"[default0]:"):
            line = b"2026-01-02T10:00:00Z " + prefix + TAG.encode() + b" {" + member + b"}\n"
            for message, *_ in MessageReader(errors.append).read(line):
                for dropped in message.dropped:
                    assert is_shown(str(dropped))
    for error in errors:
        assert is_shown(str(error))


def annotation(value: bytes) -> None:
    """An annotation of a TrainJob, where all TrainJobs are read with it."""
    text = b'{"uid":"u","status":{"trainerStatus":' + value + b"}}"
    for name in (EXTENSION + "trainer", EXTENSION + "x"):
        metadata = {"name": "a", "uid": "u", "annotations": {name: text.decode(errors="replace")}}
        decode_status({"metadata": metadata, "status": {}})


def snapshot(value: bytes) -> None:
    """A ConfigMap in the place of a snapshot."""
    made = {"metadata": {"name": "a"}, "data": {"runtime": (b'{"a":' + value + b"}").decode(errors="replace")}}
    open_snapshot(made)


def answer(value: bytes) -> None:
    """What stands before an API server answers with an error."""
    answer_error(502, {}, b'{"message":' + value + b"}", "GET /")


def file(value: bytes) -> None:
    """A file of the command, and what a user types on the page."""
    text = (b"a: " + value).decode(errors="surrogateescape")
    for document in parse_yaml(text):
        for error in text_errors(document):
            raise YamlError(str(error))
        msgspec.json.encode(document)


def is_shown(text: str) -> bool:
    """Whether people can read a text: it is one short line."""
    return len(text) < 1000 and text.isprintable()


ENTRANCES: Final[dict[str, Callable[[bytes], None]]] = {
    each.__name__: each for each in (webhook, post, log_line, annotation, snapshot, answer, file)
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("enter", ENTRANCES.values(), ids=ENTRANCES.keys())
def test_entrances(enter: Callable[[bytes], None], value: bytes) -> None:
    """It is taken, or refused by the error of its entrance, whose text is one short line in printable characters."""
    texts: list[str] = []
    try:
        enter(value)
    except (ReviewError, InvalidObjectError, BuildError, YamlError) as error:
        texts.append(str(error))
    assert all(map(is_shown, texts)), texts
