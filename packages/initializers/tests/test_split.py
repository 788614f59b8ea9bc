"""SPLIT, from its syntax to the rows that are in the target."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from packages.initializers.tests.conftest import Initializer
from packages.initializers.tests.servers.hub_server import HubRepo, HubServer
from trainer_initializers.errors import TransferError
from trainer_initializers.split import parse_split, splits_of


@pytest.mark.parametrize(
    ("text", "rows", "bounds"),
    [
        pytest.param("train", 10, [(0, 10)], id="whole"),
        pytest.param("train[:4]", 10, [(0, 4)], id="first"),
        pytest.param("train[4:]", 10, [(4, 10)], id="from"),
        pytest.param("train[-3:]", 10, [(7, 10)], id="last"),
        pytest.param("train[:-3]", 10, [(0, 7)], id="without the last"),
        pytest.param("train[2:4]", 10, [(2, 4)], id="between"),
        pytest.param("train[:5000]", 10, [(0, 10)], id="more than there are"),
        pytest.param("train[20:30]", 10, [(10, 10)], id="behind the end"),
        pytest.param("train[5:2]", 10, [(5, 5)], id="backwards"),
        pytest.param("train[10%:20%]", 1005, [(100, 201)], id="percent"),
        pytest.param("train[-10%:]", 50, [(45, 50)], id="last percent"),
        pytest.param("train[:]", 10, [(0, 10)], id="no numbers"),
        pytest.param("train[:2] + test[:50%]", 10, [(0, 2), (0, 5)], id="sum"),
    ],
)
def test_slices(text: str, rows: int, bounds: list[tuple[int, int]]) -> None:
    """A slice means the rows that the library datasets takes for it."""
    assert [each.bounds(rows) for each in parse_split(text)] == bounds


@pytest.mark.parametrize(
    "text",
    [
        *("train[5]", "train[5:", "[:5]", "train[:5%0]", "train[10%:20]", "train[:101%]", "a++b", "train[:1.5]"),
        *("train()", "x" * 100_000, "a+" * 50_000 + "-"),
    ],
    ids=lambda text: text[:20],
)
def test_slices_that_are_none(text: str) -> None:
    """What is not in the syntax is refused with the name of the variable and an example."""
    with pytest.raises(TransferError, match=r"SPLIT=.* is no slice of a dataset: write it as \w+\[?"):
        parse_split(text)


@pytest.mark.parametrize(
    ("paths", "splits"),
    [
        pytest.param(
            [
                "data/train-00001-of-00002.parquet",
                "data/train-00000-of-00002.parquet",
                "data/dev-00000-of-00001.parquet",
            ],
            {
                "dev": ["data/dev-00000-of-00001.parquet"],
                "train": ["data/train-00000-of-00002.parquet", "data/train-00001-of-00002.parquet"],
            },
            id="shards",
        ),
        pytest.param(
            ["train.csv", "my_test.csv", "val-1.csv", "notes.csv"],
            {"test": ["my_test.csv"], "train": ["train.csv"], "validation": ["val-1.csv"]},
            id="names of files",
        ),
        pytest.param(
            ["training/a.jsonl", "evaluation/a.jsonl"],
            {"test": ["evaluation/a.jsonl"], "train": ["training/a.jsonl"]},
            id="names of directories",
        ),
        pytest.param(["trainer.csv", "a/retested.csv"], {"train": ["a/retested.csv", "trainer.csv"]}, id="no names"),
    ],
)
def test_files_of_splits(paths: Sequence[str], splits: dict[str, list[str]]) -> None:
    """Files belong to splits as the library datasets finds it."""
    assert splits_of(paths) == splits


def as_parquet(numbers: Sequence[int]) -> bytes:
    buffer = io.BytesIO()
    table = pa.table({"text": ["é\n" * 100] * len(numbers), "n": list(numbers)}, metadata={"huggingface": "{}"})
    parquet.write_table(table, buffer, row_group_size=30)
    return buffer.getvalue()


def as_csv(numbers: Sequence[int]) -> bytes:
    return "".join(["text,n\n", *(f'"a ""line""\nbreak",{number}\n\n' for number in numbers)]).encode()[:-1]


def as_lines(numbers: Sequence[int]) -> bytes:
    return "\n".join(json.dumps({"text": "x", "n": number}) for number in numbers).encode()


def from_parquet(content: bytes) -> list[int]:
    table = parquet.read_table(io.BytesIO(content))
    assert table.schema.metadata == {b"huggingface": b"{}"}
    return [int(number) for number in table["n"].to_pylist()]


def from_csv(content: bytes) -> list[int]:
    import csv

    return [int(row["n"]) for row in csv.DictReader(io.StringIO(content.decode(), newline=""))]


def from_lines(content: bytes) -> list[int]:
    return [json.loads(line)["n"] for line in content.splitlines()]


KINDS = [
    pytest.param(".parquet", as_parquet, from_parquet, id="parquet"),
    pytest.param(".csv", as_csv, from_csv, id="csv"),
    pytest.param(".jsonl", as_lines, from_lines, id="jsonl"),
    pytest.param(".json", as_lines, from_lines, id="json"),
    pytest.param(
        ".csv.gz", lambda n: gzip.compress(as_csv(n)), lambda content: from_csv(gzip.decompress(content)), id="csv.gz"
    ),
]


@pytest.mark.parametrize(("ending", "encode", "decode"), KINDS)
@pytest.mark.parametrize(
    ("split", "expected"),
    [
        ("train", {"a": range(100), "b": range(100, 200)}),
        ("train[:45]", {"a": range(45)}),
        ("train[95:105]", {"a": range(95, 100), "b": range(100, 105)}),
        ("train[-5:]", {"b": range(195, 200)}),
        ("train[25%:30%]", {"a": range(50, 60)}),
        ("train[:2]+train[98:101]", {"a": [0, 1, 98, 99], "b": [100]}),
        ("test[:1]+train[:1]", {"a": [0], "c": [7]}),
    ],
)
def test_rows(
    initializer: Initializer,
    tmp_path: Path,
    ending: str,
    encode: Callable[[Sequence[int]], bytes],
    decode: Callable[[bytes], list[int]],
    split: str,
    expected: dict[str, Sequence[int]],
) -> None:
    """Every kind of file keeps the rows of the slice, in files that are read as before, and nothing else is there."""
    source = tmp_path / "source"
    (source / "train").mkdir(parents=True)
    (source / "train" / f"a{ending}").write_bytes(encode(range(100)))
    (source / "train" / f"b{ending}").write_bytes(encode(range(100, 200)))
    (source / f"c_test{ending}").write_bytes(encode([7]))
    (source / "README.md").write_text("rows: 201")
    assert initializer.run(f"file://{source}", SPLIT=split) == 0, initializer.message
    names = {"a": f"train/a{ending}", "b": f"train/b{ending}", "c": f"c_test{ending}"}
    found = {name: decode(content) for name, content in initializer.fetched().items()}
    assert found == {names[name]: list(numbers) for name, numbers in expected.items()}


def test_large_rows(initializer: Initializer, tmp_path: Path) -> None:
    """Rows such as images are held by their size, and not by a number, until they are written."""
    rows = [random.Random(number).randbytes(1 << 20) for number in range(24)]
    (tmp_path / "source").mkdir()
    parquet.write_table(pa.table({"image": rows}), tmp_path / "source" / "a.parquet")
    assert initializer.run(f"file://{tmp_path / 'source'}", SPLIT="train[1:]") == 0, initializer.message
    (content,) = initializer.fetched().values()
    file = parquet.ParquetFile(io.BytesIO(content))
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert file.read()["image"].to_pylist() == rows[1:]
    assert max(groups) <= 8


def test_no_more_than_needed_is_fetched(initializer: Initializer) -> None:
    """The first rows cost the first shards; a second run fetches nothing, and another slice needs another target."""
    with HubServer() as hub:
        shards = {f"data/train-0000{number}-of-00009.parquet": as_parquet(range(100)) for number in range(9)}
        hub.repos["datasets/me/data"] = HubRepo({**shards, "README.md": b"# rows"})
        initializer.environ["HF_ENDPOINT"] = hub.url

        assert initializer.run("hf://me/data", SPLIT="train[:150]") == 0, initializer.message
        assert sorted(initializer.fetched()) == sorted(shards)[:2]
        asked = {request.path for request in hub.requests if ".parquet" in request.path}
        assert {name for name in shards if any(name in path for path in asked)} == set(sorted(shards)[:2])

        hub.requests.clear()
        assert initializer.run("hf://me/data", SPLIT="train[:150]") == 0, initializer.message
        assert not [request for request in hub.requests if ".parquet" in request.path]

        assert initializer.run("hf://me/data", SPLIT="train") == 2
        assert "holds hf://me/data SPLIT=train[:150]: empty it, or use another volume" in initializer.message


def test_source_that_changes(initializer: Initializer, tmp_path: Path) -> None:
    """Rows are selected anew when the source is another; files that have none of them vanish."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.jsonl").write_bytes(as_lines(range(3)))
    (source / "b.jsonl").write_bytes(as_lines(range(3, 9)))
    assert initializer.run(f"file://{source}", SPLIT="train[:5]") == 0, initializer.message
    assert sorted(initializer.fetched()) == ["a.jsonl", "b.jsonl"]
    (source / "a.jsonl").write_bytes(as_lines(range(20, 40)))
    assert initializer.run(f"file://{source}", SPLIT="train[:5]") == 0, initializer.message
    assert {name: from_lines(rows) for name, rows in initializer.fetched().items()} == {"a.jsonl": [20, 21, 22, 23, 24]}


@pytest.mark.parametrize(
    ("command", "files", "split", "message"),
    [
        pytest.param("dataset", {"a.bin": b"x"}, "train", "has no files with rows to select (", id="no table"),
        pytest.param("dataset", {"a.csv": b"n\n1\n"}, "test", "has no split test: it has train", id="no such split"),
        pytest.param("dataset", {"a.csv": b"n\n1\n"}, "train[5:]", "has no such rows: train has 1 rows", id="no rows"),
        pytest.param("dataset", {"a.csv": b"n\n1\n"}, "train[1]", "is no slice of a dataset", id="no slice"),
        pytest.param("dataset", {"a.json": b"[{}]"}, "train", "a.json has no JSON object in each line", id="document"),
        pytest.param("dataset", {"a.json": b"{\n}"}, "train", "a.json has no JSON object in each line", id="lines"),
        pytest.param("dataset", {"a.parquet": b"x"}, "train", "a.parquet cannot be read as Parquet", id="no Parquet"),
        pytest.param("dataset", {"a.csv.gz": b"x"}, "train", "a.csv.gz cannot be read", id="no gzip"),
        pytest.param("model", {"a.csv": b"n\n1\n"}, "train", "rows of a dataset, and the command is model", id="model"),
        pytest.param("export", {"a.csv": b"n\n1\n"}, "train", "and the command is export: remove SPLIT", id="export"),
    ],
)
def test_what_has_no_rows(
    initializer: Initializer, tmp_path: Path, command: str, files: dict[str, bytes], split: str, message: str
) -> None:
    """Where SPLIT selects nothing it is refused by name, and nothing appears in the target."""
    (tmp_path / "source").mkdir()
    for name, content in files.items():
        (tmp_path / "source" / name).write_bytes(content)
    assert initializer.run(f"file://{tmp_path}/source", command, SPLIT=split) == 2
    assert "SPLIT" in initializer.message
    assert message in initializer.message
    assert not initializer.target.exists()
