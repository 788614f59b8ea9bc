from __future__ import annotations

import json
import string
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainer.kube.podlogs.instant import Instant
from trainer.progress.protocol import (
    METRICS_LIMIT,
    PAYLOAD_LIMIT,
    Message,
    RejectedMessageError,
    SavedCheckpoint,
    TaggedLine,
    parse,
    tagged_lines,
)

STAMP = b"2026-11-21T10:30:45.123456789Z"
TIME = Instant(1795257045, 123456789)
V1, V2 = (f"[trainer.kubeflow.org/{version}/trainjob/trainerStatus]".encode() for version in ("v1alpha1", "v2alpha1"))


def line(text: bytes) -> bytes:
    return STAMP + b" " + text + b"\n"


def payloads(block: bytes) -> list[bytes]:
    return [each.payload for each in tagged_lines(block) if each.unknown_prefix is None]


def rejection(payload: bytes) -> str:
    with pytest.raises(RejectedMessageError) as caught:
        parse(payload)
    return str(caught.value)


@pytest.mark.parametrize("tag", [V1, V2])
def test_tagged_lines_gives_time_and_payload(tag: bytes) -> None:
    """A line with either tag comes with its timestamp to the nanosecond and with everything behind the tag."""
    block = line(b"before") + line(tag + b' {"currentStep":1}') + line(b"after")
    assert list(tagged_lines(block)) == [TaggedLine(TIME, b' {"currentStep":1}')]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"\r 45%|####     | 9/20" + V2 + b" {}", b" {}", id="beside a progress bar"),
        pytest.param(b"\r\xff\x00\xfe" + V2 + b" {}\r", b" {}\r", id="after binary output with a carriage return"),
        pytest.param(V2 + b"{}", b"{}", id="without whitespace"),
        pytest.param(V2 + b" a " + V2 + b" b", b" a " + V2 + b" b", id="the first of two"),
        pytest.param(b"print('" + V2 + b" {}')", None, id="amid code"),
        pytest.param(b"\x1b" + V2 + b" {}", None, id="after half a control sequence"),
        pytest.param(b"[trainer.kubeflow.org/v3/trainjob/trainerStatus] {}", None, id="another version"),
        pytest.param(b"[example.org/v2alpha1/trainjob/trainerStatus] {}", None, id="another group"),
        pytest.param(b"/trainjob/trainerStatus] {}", None, id="the end of a tag"),
        pytest.param(V2.upper() + b" {}", None, id="another case"),
    ],
)
def test_where_a_tag_counts(text: bytes, expected: bytes | None) -> None:
    """A tag counts at the start of a line, behind a launcher's prefix or a progress bar, and nowhere else."""
    assert payloads(line(text)) == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    "stamp",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"2026-13-99T00:00:00Z", id="no date"),
        pytest.param(b"9" * 5000, id="long"),
    ],
)
def test_lines_without_a_timestamp_are_ordinary(stamp: bytes) -> None:
    """A line whose time is unknown is no message, and keeps nobody from finding those around it."""
    block = line(V2 + b" a") + stamp + b" " + V2 + b" x\n" + V2 + b" y\n" + line(V2 + b" b")
    assert payloads(block) == [b" a", b" b"]


NOISE = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([V2, V1, b"/trainjob/trainerStatus]", V2[:-1], b"\r", b"\x1b[K", b" ", b"[trainer.kubeflow.org/"]),
).map(lambda raw: raw.replace(b"\n", b""))
LINES = st.lists(
    st.one_of(
        # An untagged line begins with a quote and has no carriage return, so that no tag in it counts.
        st.lists(NOISE, max_size=4).map(lambda parts: (b"'" + b"".join(parts).replace(b"\r", b""), None)),
        st.tuples(st.sampled_from([b"", b"  ", b"\r", b"50%\r"]), st.sampled_from([V1, V2]), st.lists(NOISE)).map(
            lambda each: (each[0] + each[1] + b"".join(each[2]), b"".join(each[2]))
        ),
    ),
    max_size=12,
)


@given(LINES, st.integers(0, 12))
def test_tagged_lines_finds_exactly_the_tagged_lines(lines: list[tuple[bytes, bytes | None]], cut: int) -> None:
    """Whatever is around them, all tagged lines are found and nothing else, however lines come together in blocks."""
    expected = [payload for _, payload in lines if payload is not None]
    blocks = [line(text) for text, _ in lines]
    assert payloads(b"".join(blocks)) == expected
    assert [payload for block in blocks for payload in payloads(block)] == expected
    assert payloads(b"".join(blocks[:cut])) + payloads(b"".join(blocks[cut:])) == expected


@given(st.lists(st.one_of(NOISE, st.just(b"\n"), st.just(STAMP + b" ")), max_size=20).map(b"".join))
def test_tagged_lines_of_anything(block: bytes) -> None:
    """Bytes of any kind give lines or nothing, never an error, and each line of a block for itself gives the same."""
    assert payloads(block) == [payload for each in block.split(b"\n") for payload in payloads(each + b"\n")]


def test_parse_reads_all_fields() -> None:
    """The example of KEP-2779 is read as it stands, and numbers of metrics keep their digits."""
    payload = (
        b' {"progressPercentage":45,"estimatedRemainingSeconds":795649,"currentStep":4500,"totalSteps":10000,'
        b'"currentEpoch":2,"totalEpochs":5,"trainMetrics":{"loss":0.2347,"learning_rate":1e-05,"tokens":120000000000},'
        b'"evalMetrics":{"eval_loss":0.1000,"bias":-0.0}}'
    )
    assert parse(payload) == Message(
        progress_percentage=45,
        estimated_remaining_seconds=795649,
        current_step=4500,
        total_steps=10000,
        current_epoch=2,
        total_epochs=5,
        train_metrics={"loss": "0.2347", "learning_rate": "1e-05", "tokens": "120000000000"},
        eval_metrics={"eval_loss": "0.1000", "bias": "-0.0"},
    )


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(b" {}", Message(), id="empty"),
        pytest.param(b'\t \r{"currentStep" : 3 }\r', Message(current_step=3), id="whitespace"),
        pytest.param(b'\v\f{"currentStep": 3}\f', Message(current_step=3), id="odd whitespace"),
        pytest.param(b' {"progressPercent":45}', Message(progress_percentage=45), id="the name of the KEP's example"),
        pytest.param(
            b' {"progressPercent":null,"progressPercentage":45}', Message(progress_percentage=45), id="one of two names"
        ),
        pytest.param(
            b' {"currentStep":null,"trainMetrics":null}',
            Message(cleared=frozenset({"current_step", "train_metrics"})),
            id="nulls",
        ),
        pytest.param(
            b' {"progressPercent":null}', Message(cleared=frozenset({"progress_percentage"})), id="null by another name"
        ),
        pytest.param(b' {"currentStep":45.0}', Message(current_step=45), id="integral float"),
        pytest.param(b' {"progressPercentage":0}', Message(progress_percentage=0), id="least percentage"),
        pytest.param(b' {"progressPercentage":100}', Message(progress_percentage=100), id="greatest percentage"),
        pytest.param(b' {"totalSteps":2147483647}', Message(total_steps=2**31 - 1), id="greatest step"),
        pytest.param(
            b' {"estimatedRemainingSeconds":9223372036854775807}',
            Message(estimated_remaining_seconds=2**63 - 1),
            id="greatest time",
        ),
        pytest.param(b' {"later":[1,{"currentStep":"x"}],"NaN":NaN}', Message(), id="unknown keys"),
        pytest.param(b" {}".ljust(PAYLOAD_LIMIT), Message(), id="longest payload"),
        pytest.param(b' {"trainMetrics":{}}', Message(train_metrics={}), id="no metrics"),
        pytest.param(
            b' {"currentStep":4,"checkpoint":{"step":3.0,"path":"a/step-3","size":7}}',
            Message(current_step=4, checkpoint=SavedCheckpoint(3, "a/step-3")),
            id="checkpoint",
        ),
        pytest.param(
            b' {"checkpoint":{"step":3,"path":null}}',
            Message(checkpoint=SavedCheckpoint(3), is_checkpoint_only=True),
            id="checkpoint alone",
        ),
        pytest.param(b' {"checkpoint":null,"currentStep":1}', Message(current_step=1), id="checkpoint null"),
        pytest.param(
            ' {"trainMetrics":{"perte élevée 損失 🙂":1}}'.encode(),
            Message(train_metrics={"perte élevée 損失 🙂": "1"}),
            id="name in any language",
        ),
        pytest.param(
            f' {{"trainMetrics":{{"{"n" * 64}":{"1" * 64}}}}}'.encode(),
            Message(train_metrics={"n" * 64: "1" * 64}),
            id="longest name and value",
        ),
        pytest.param(
            b' {"evalMetrics":{"a":1E+3,"b":0.' + b"3" * 30 + b"}}",
            Message(eval_metrics={"a": "1E+3", "b": "0." + "3" * 30}),
            id="digits beyond those of a float",
        ),
    ],
)
def test_parse_accepts(payload: bytes, expected: Message) -> None:
    """A message may lack fields, have fields of later versions, and write integers as floats."""
    assert parse(payload) == expected


def metrics(count: int) -> bytes:
    return json.dumps({"trainMetrics": {f"m{number}": number for number in range(count)}}).encode()


@pytest.mark.parametrize("count", [METRICS_LIMIT, METRICS_LIMIT + 1])
def test_number_of_metrics(count: int) -> None:
    """256 metrics are not too many, and of more the first ones count."""
    assert len(parse(b" " + metrics(count)).train_metrics or {}) == METRICS_LIMIT


OBJECT = "must be one JSON object"


shallow = pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 reads what is as deep as a text can be")
"""Cases of texts that are nested too deeply for the interpreter."""


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        pytest.param(b"", 'Invalid value: "": the tag must be followed by whitespace and a JSON object', id="nothing"),
        pytest.param(
            b'{"a":1}',
            r'Invalid value: "{\"a\":1}": the tag must be followed by whitespace and a JSON object',
            id="no whitespace",
        ),
        pytest.param(b"  ", f'Invalid value: "": {OBJECT}: Expecting value at character 1', id="blank"),
        pytest.param(b" -inf", f'Invalid value: "-inf": {OBJECT}', id="infinity"),
        pytest.param(
            b' {"a":nan', f"""Invalid value: "{{\\"a\\":nan": {OBJECT}: Expecting value at character 6""", id="cut"
        ),
        pytest.param(b" {} x", f'Invalid value: "{{}} x": {OBJECT}: Extra data at character 4', id="trailing text"),
        pytest.param(
            b" {'a': 1}",
            f"Invalid value: \"{{'a': 1}}\": {OBJECT}: "
            "Expecting property name enclosed in double quotes at character 2",
            id="Python's dict",
        ),
        pytest.param(
            b'\t {"a":"\x01\x1b[31m"}',
            rf'Invalid value: "{{\"a\":\"\u0001\u001b[31m\"}}": {OBJECT}: Invalid control character at character 7',
            id="control characters",
        ),
        pytest.param(
            b" \xef\xbb\xbf{}", rf'Invalid value: "\ufeff{{}}": {OBJECT}: Expecting value at character 1', id="BOM"
        ),
        pytest.param(
            b" {\xff}", 'Invalid value: " {\ufffd}": must be UTF-8: invalid start byte at byte 3', id="invalid UTF-8"
        ),
        pytest.param(
            b" " + b"[" * 60000,
            f'Invalid value: "{"[" * 40}...": {OBJECT}: it is nested too deeply',
            id="deep arrays",
            marks=shallow,
        ),
        pytest.param(
            b" " + b'{"a":' * 10000,
            'Invalid value: "' + r"{\"a\":" * 8 + f'...": {OBJECT}: it is nested too deeply',
            id="deep objects",
            marks=shallow,
        ),
        pytest.param(b" " * (PAYLOAD_LIMIT + 1), "Too long: may not be more than 65536 bytes", id="too long"),
    ],
)
def test_parse_rejects(payload: bytes, text: str) -> None:
    """What is not one JSON object is refused as a whole, naming the rule in printable characters."""
    assert rejection(payload) == text
    assert text.isprintable()


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        pytest.param(
            b' {"progressPercentage":140}',
            "progressPercentage: Invalid value: 140: must be at most 100",
            id="percentage too great",
        ),
        pytest.param(
            b' {"progressPercent":-1}',
            "progressPercent: Invalid value: -1: must be at least 0",
            id="percentage negative",
        ),
        pytest.param(
            b' {"progressPercent":45,"progressPercentage":45}',
            "progressPercent: Forbidden: it is another name of progressPercentage, which is there, too",
            id="both names of the percentage",
        ),
        pytest.param(
            b' {"currentStep":1,"currentStep":2}',
            "currentStep: Forbidden: it occurs twice, and the first one counts",
            id="twice",
        ),
        pytest.param(b' {"currentStep":45.7}', "currentStep: Invalid value: 45.7: must be an integer", id="fraction"),
        pytest.param(
            b' {"currentStep":45.0000000000000000000000001}',
            "currentStep: Invalid value: 45.0000000000000000000000001: must be an integer",
            id="fraction that a float loses",
        ),
        pytest.param(b' {"currentStep":"45"}', 'currentStep: Invalid value: "45": must be an integer', id="string"),
        pytest.param(
            b' {"totalSteps":2147483648}',
            "totalSteps: Invalid value: 2147483648: must be at most 2147483647",
            id="step too great",
        ),
        pytest.param(
            b' {"totalEpochs":' + b"1" * 5000 + b"}",
            f"totalEpochs: Invalid value: {'1' * 40}...: must be at most 2147483647",
            id="thousands of digits",
        ),
        pytest.param(
            b' {"currentEpoch":1e999999999}',
            "currentEpoch: Invalid value: 1e999999999: must be at most 2147483647",
            id="huge exponent",
        ),
        pytest.param(
            b' {"currentEpoch":1e99999999999999999999}',
            "currentEpoch: Invalid value: 1e99999999999999999999: must be an integer",
            id="exponent beyond all numbers",
        ),
        pytest.param(
            b' {"currentStep":"\\ud800\\u202e\\u007f"}',
            r'currentStep: Invalid value: "\ud800\u202e\u007f": must be an integer',
            id="what a terminal would obey",
        ),
        pytest.param(
            b" " + metrics(257), "trainMetrics: Too many: 257: must have at most 256 items", id="too many metrics"
        ),
        pytest.param(
            b' {"checkpoint":3}',
            "checkpoint: Invalid value: 3: must be an object with step and path",
            id="checkpoint as a number",
        ),
        pytest.param(
            b' {"checkpoint":{"path":"step-3"}}',
            "checkpoint.step: Invalid value: null: must be an integer",
            id="checkpoint without a step",
        ),
        pytest.param(
            b' {"checkpoint":{"step":-3}}',
            "checkpoint.step: Invalid value: -3: must be at least 0",
            id="checkpoint before all steps",
        ),
        pytest.param(
            b' {"checkpoint":{"step":3,"path":4}}',
            "checkpoint.path: Invalid value: 4: must be a string",
            id="path as a number",
        ),
        pytest.param(
            b' {"checkpoint":{"step":3,"path":"' + b"p" * 257 + b'"}}',
            f'checkpoint.path: Invalid value: "{"p" * 40}...": must be no more than 256 characters',
            id="path too long",
        ),
        pytest.param(
            b' {"checkpoint":{"step":3,"path":"a\\u001b[31m"}}',
            r'checkpoint.path: Invalid value: "a\u001b[31m": must consist of printable characters',
            id="path with control characters",
        ),
        *(
            pytest.param(
                f' {{"checkpoint":{{"step":3,"path":"{path}"}}}}'.encode(),
                f'checkpoint.path: Invalid value: "{path}": must be a path within the directory of all checkpoints',
                id=f"path {path}",
            )
            for path in ("", "/etc", "..", "step-3/../../etc")
        ),
        pytest.param(
            b' {"evalMetrics":{"loss":NaN}}',
            "evalMetrics[loss]: Invalid value: NaN: must be a finite number",
            id="metric NaN",
        ),
        pytest.param(
            b' {"evalMetrics":{"loss":1e999}}',
            "evalMetrics[loss]: Invalid value: 1e999: must be a finite number",
            id="metric beyond all floats",
        ),
        pytest.param(
            b' {"evalMetrics":{"loss":"0.5"}}',
            'evalMetrics[loss]: Invalid value: "0.5": must be a number',
            id="metric as a string",
        ),
        pytest.param(
            b' {"evalMetrics":{"loss":' + b"1" * 65 + b"}}",
            f"evalMetrics[loss]: Invalid value: {'1' * 40}...: must be no more than 64 characters",
            id="metric with too many digits",
        ),
        pytest.param(
            b' {"evalMetrics":{"loss":1,"loss":2}}', 'evalMetrics: Duplicate value: "loss"', id="metric twice"
        ),
        pytest.param(
            b' {"evalMetrics":{"":1}}',
            'evalMetrics: Invalid value: "": the name of a metric must not be empty',
            id="metric without a name",
        ),
        pytest.param(
            b' {"evalMetrics":{"' + b"n" * 65 + b'":1}}',
            f'evalMetrics: Invalid value: "{"n" * 40}...": the name of a metric must be no more than 64 characters',
            id="name too long",
        ),
        pytest.param(
            b' {"evalMetrics":{"a\\u0000b\\u001b[31m":1}}',
            r'evalMetrics: Invalid value: "a\u0000b\u001b[31m": '
            "the name of a metric must consist of printable characters",
            id="name with control characters",
        ),
        pytest.param(
            b' {"evalMetrics":{"\\ud83d":1}}',
            r'evalMetrics: Invalid value: "\ud83d": the name of a metric must consist of printable characters',
            id="name with half a character",
        ),
    ],
)
def test_parse_drops_values(payload: bytes, text: str) -> None:
    """A value that breaks a rule is dropped, naming field, value and rule in printable characters; the rest counts."""
    rest = b',"totalEpochs":7}' if b"totalEpochs" not in payload else b',"currentEpoch":7}'
    message = parse(payload.removesuffix(b"}") + rest)
    assert [str(error) for error in message.dropped] == [text]
    assert text.isprintable()
    assert 7 in {message.total_epochs, message.current_epoch}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(
            b' {"progressPercentage":140,"currentStep":3,"totalSteps":NaN}', Message(current_step=3), id="integers"
        ),
        pytest.param(
            b' {"progressPercentage":45,"trainMetrics":{"loss":NaN,"lr":0.1},"evalMetrics":{"loss":0.5}}',
            Message(progress_percentage=45, train_metrics={"lr": "0.1"}, eval_metrics={"loss": "0.5"}),
            id="one metric among others",
        ),
        pytest.param(
            b' {"currentStep":3,"trainMetrics":{"nan":1,"a":nan,"b":-inf,"c":+Inf,"d":-Infinity,"e\\"inf":2}}',
            Message(current_step=3, train_metrics={"nan": "1", 'e"inf': "2"}),
            id="as printf and Go spell them",
        ),
        pytest.param(b' {"currentStep":1,"currentStep":2}', Message(current_step=1), id="the first of a pair"),
        pytest.param(
            b' {"evalMetrics":{"a":1,"a":2,"b":3}}', Message(eval_metrics={"a": "1", "b": "3"}), id="metric twice"
        ),
        pytest.param(
            b' {"progressPercent":45,"progressPercentage":46}', Message(progress_percentage=46), id="both percentages"
        ),
        pytest.param(
            b' {"progressPercent":45,"progressPercentage":NaN}', Message(progress_percentage=45), id="one percentage"
        ),
        pytest.param(
            b' {"checkpoint":{"step":3,"path":"/"}}',
            Message(checkpoint=SavedCheckpoint(3), is_checkpoint_only=True),
            id="the step of a checkpoint",
        ),
    ],
)
def test_what_is_left_of_a_message(payload: bytes, expected: Message) -> None:
    """All values that fit count, whatever is beside them."""
    message = parse(payload)
    assert message.dropped
    assert replace(message, dropped=()) == expected


def test_errors_are_bounded() -> None:
    """A message of nothing but bad values names only the first ones."""
    assert len(parse(b" " + json.dumps({"trainMetrics": {f"m{n}": None for n in range(200)}}).encode()).dropped) == 16


FIELD_NAMES = (
    "progressPercentage",
    "progressPercent",
    "estimatedRemainingSeconds",
    "currentStep",
    "totalSteps",
    "currentEpoch",
    "totalEpochs",
    "trainMetrics",
    "evalMetrics",
    "checkpoint",
)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from([0, 1, 100, 45.0, 2**31])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)
MESSAGES = st.dictionaries(st.one_of(st.sampled_from(FIELD_NAMES), st.text(max_size=5)), VALUES)
PAYLOADS = st.one_of(
    st.binary(),
    st.text(st.sampled_from(string.printable)).map(str.encode),
    st.text(st.sampled_from('{}[]",:\\0123456789.eE+-nulltruefalseNaN ')).map(str.encode),
    MESSAGES.map(lambda message: json.dumps(message, ensure_ascii=True).encode()),
    MESSAGES.map(lambda message: json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")),
)


def fits(message: Message) -> bool:
    maps: list[Mapping[str, str]] = [message.train_metrics or {}, message.eval_metrics or {}]
    counts = [message.current_step, message.total_steps, message.current_epoch, message.total_epochs]
    counts += [message.checkpoint.step] if message.checkpoint is not None else []
    return (
        0 <= (message.progress_percentage or 0) <= 100
        and 0 <= (message.estimated_remaining_seconds or 0) < 2**63
        and all(type(count) is int and 0 <= count < 2**31 for count in counts if count is not None)
        and all(len(each) <= 256 for each in maps)
        and all(0 < len(name) <= 64 and name.isprintable() for each in maps for name in each)
        and all(type(value) is str and abs(float(value)) < float("inf") for each in maps for value in each.values())
    )


@given(PAYLOADS, st.sampled_from([b" ", b"", b"\t"]))
@example(b"1" * 5000, b" ")
@example(b'{"currentStep":' + b"9" * 60000 + b"}", b" ")
@example(b'{"trainMetrics":{"a":' + b"9" * 60000 + b"}}", b" ")
@example(b'{"currentStep":0.' + b"0" * 60000 + b"1}", b" ")
@example(b'{"x":' * 500 + b"1" + b"}" * 500, b" ")
def test_parse_of_anything(payload: bytes, blank: bytes) -> None:
    """Whatever a training prints behind the tag is a message within all limits, or short printable errors."""
    refusal: RejectedMessageError | None = None
    message: Message | None = None
    try:
        message = parse(blank + payload)
    except RejectedMessageError as error:
        refusal = error
    texts = [str(refusal)] if refusal else [str(error) for error in message.dropped] if message else []
    assert all(text.isprintable() and len(text) < 600 for text in texts)
    assert refusal is not None or (message is not None and fits(message))


@given(st.dictionaries(st.text(string.ascii_letters, min_size=1, max_size=64), st.floats(allow_nan=False)))
def test_metrics_keep_their_digits(values: dict[str, float]) -> None:
    """What Python prints for a number is what is kept of it."""
    finite: dict[str, Any] = {name: value for name, value in values.items() if abs(value) < float("inf")}
    message = parse(b" " + json.dumps({"trainMetrics": finite}).encode())
    assert message.train_metrics == {name: repr(value) for name, value in finite.items()}


def test_nesting_is_refused_by_a_caller_that_is_deep_itself() -> None:
    """Running out of stack is a refusal as well."""

    def descend(levels: int) -> str:
        return descend(levels - 1) if levels else rejection(b" " + b"[" * 900 + b"]" * 900)

    assert descend(sys.getrecursionlimit() // 4).startswith("Invalid value: ")
