from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from packages.initializers.tests.conftest import Initializer
from packages.initializers.tests.servers import AnswerFault, RangeServer
from trainer_initializers.parts import PART_SIZE

BIG = random.Random(7).randbytes(2 * PART_SIZE + 12345)
SHA = hashlib.sha256(BIG).hexdigest()


def test_file_is_fetched_in_parts(initializer: Initializer, server: RangeServer) -> None:
    """A large file is read in ranges that touch each other, and nothing but the file is left in the target."""
    server.files["/data/big.tar"] = BIG
    assert initializer.run(f"{server.url}/data/big.tar#sha256={SHA}") == 0
    assert initializer.fetched() == {"big.tar": BIG}
    ranges = sorted(each for each in server.ranges("/data/big.tar") if each and each != (0, 1))
    assert ranges == [(0, PART_SIZE), (PART_SIZE, 2 * PART_SIZE), (2 * PART_SIZE, len(BIG))]
    assert sorted(path.name for path in initializer.target.parent.iterdir()) == ["dataset"]


def test_second_run_fetches_nothing(initializer: Initializer, server: RangeServer) -> None:
    """A container that is started again asks whether the file has changed, and reads none of it."""
    server.files["/a.bin"] = BIG
    assert initializer.run(f"{server.url}/a.bin") == 0
    server.requests.clear()
    assert initializer.run(f"{server.url}/a.bin") == 0
    assert server.ranges("/a.bin") == [(0, 1)]


@pytest.mark.parametrize(
    ("fault", "waits"),
    [
        pytest.param(AnswerFault(status=503, times=3, skips=1), 3, id="server errors"),
        pytest.param(AnswerFault(status=429, headers=(("Retry-After", "7"),)), 1, id="too many requests"),
        pytest.param(AnswerFault(cut=1000, times=4, skips=1), 4, id="answers that end early"),
        pytest.param(AnswerFault(stalls=True, skips=1), 1, id="an answer that does not come"),
        pytest.param(AnswerFault(flips=True, skips=1), 0, id="bytes that change on the way"),
    ],
)
def test_fault_is_survived(initializer: Initializer, server: RangeServer, fault: AnswerFault, waits: int) -> None:
    """What fails once does not fail the fetch, and the file is right."""
    server.files["/a.bin"] = BIG
    server.faults.append(replace(fault))
    environ = {"TRANSFER_TIMEOUT_SECONDS": "0.5"} if fault.stalls else {}
    assert initializer.run(f"{server.url}/a.bin#sha256={SHA}", **environ) == 0, initializer.message
    assert initializer.fetched() == {"a.bin": BIG}
    assert len(initializer.waits) >= waits if fault.stalls else len(initializer.waits) == waits
    assert all(wait >= 7 for wait in initializer.waits if fault.headers)


def test_interrupted_part_goes_on_where_it_was(initializer: Initializer, server: RangeServer) -> None:
    """The bytes of an answer that broke off are kept, and only the rest is asked for."""
    server.files["/a.bin"] = BIG
    server.faults.append(AnswerFault(cut=5 << 20, skips=1))
    assert initializer.run(f"{server.url}/a.bin", TRANSFER_CONNECTIONS="1") == 0
    assert (5 << 20, PART_SIZE) in server.ranges("/a.bin")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"is_ranged": False}, id="no ranges"),
        pytest.param({"is_ranged": False, "tells_size": False}, id="no ranges and no size"),
    ],
)
def test_simple_server(initializer: Initializer, serve: Callable[..., RangeServer], options: dict[str, bool]) -> None:
    """A server that serves no ranges is read in one piece."""
    server = serve(**options)
    server.files["/a.bin"] = BIG
    assert initializer.run(f"{server.url}/a.bin#sha256={SHA}") == 0, initializer.message
    assert initializer.fetched() == {"a.bin": BIG}


def test_empty_file(initializer: Initializer, server: RangeServer) -> None:
    """A file without a byte is a file."""
    server.files["/empty"] = b""
    assert initializer.run(f"{server.url}/empty") == 0, initializer.message
    assert initializer.fetched() == {"empty": b""}


@pytest.mark.parametrize(
    ("path", "environ", "message"),
    [
        pytest.param("/nothing", {}, "does not exist (404): check storageUri", id="404"),
        pytest.param("/secret", {}, "wants credentials: give ACCESS_TOKEN by secretRef", id="401"),
        pytest.param("/secret", {"ACCESS_TOKEN": "hf_wrong"}, "refuses access (403)", id="403"),
        pytest.param("/x#md5=12", {}, "must be sha256= and 64 hexadecimal digits", id="checksum of another kind"),
    ],
)
def test_bad_source(
    initializer: Initializer, server: RangeServer, path: str, environ: dict[str, str], message: str
) -> None:
    """The termination message says in one line what is wrong and what to do, without secrets."""
    if path == "/secret":
        server.files["/secret"] = b"x"
        server.tokens.add("right-token")
    assert initializer.run(f"{server.url}{path}", **environ) == 2
    assert message in initializer.message
    assert "\n" not in initializer.message
    assert "hf_wrong" not in initializer.message
    assert not initializer.target.exists()


def test_wrong_checksum(initializer: Initializer, server: RangeServer) -> None:
    """A file with a wrong checksum is never published, and is fetched at most twice."""
    server.files["/a.bin"] = b"something"
    assert initializer.run(f"{server.url}/a.bin#sha256={SHA}") == 2
    assert "the checksum is not sha256:" in initializer.message
    assert not initializer.target.exists()
    assert server.ranges("/a.bin").count(None) == 2


def test_file_that_changes_meanwhile(initializer: Initializer, server: RangeServer) -> None:
    """Parts of two versions never make one file, where no checksum would find out."""
    server.files["/a.bin"] = BIG
    server.faults.append(AnswerFault(version='"another"', skips=2))
    assert initializer.run(f"{server.url}/a.bin", TRANSFER_CONNECTIONS="1") == 1
    assert "has changed while it was fetched: start again" in initializer.message
    assert not initializer.target.exists()


def test_wrong_range(initializer: Initializer, server: RangeServer) -> None:
    """Bytes from another place than was asked for are not written."""
    server.files["/a.bin"] = BIG
    server.faults.append(AnswerFault(shift=7, skips=1))
    assert initializer.run(f"{server.url}/a.bin") == 2
    assert "answered with another range than was asked for" in initializer.message
    assert not initializer.target.exists()


def test_file_larger_than_any_volume(initializer: Initializer, server: RangeServer) -> None:
    """A size that nobody can have costs nothing."""
    server.files["/a.bin"] = b"x"
    server.faults.append(AnswerFault(claims=10**16))
    assert initializer.run(f"{server.url}/a.bin") == 2
    assert "is too small: 9095 TiB are to be fetched" in initializer.message
    assert server.ranges("/a.bin") == [(0, 1)]


@pytest.mark.parametrize(
    ("uri", "environ", "hidden"),
    [
        pytest.param("http://u:p@ss@127.0.0.1:1/a", {}, "ss", id="password with an @"),
        pytest.param("ftp:///K/secret+key", {"SECRET_ACCESS_KEY": "/K/secret+key"}, "/K/secret", id="key like a path"),
    ],
)
def test_secrets_of_odd_form(initializer: Initializer, uri: str, environ: dict[str, str], hidden: str) -> None:
    """Secrets are cut out whatever characters they have."""
    assert initializer.run(uri, **environ) != 0
    assert "***" in initializer.message
    assert hidden not in initializer.message


def test_bytes_that_are_no_text(initializer: Initializer) -> None:
    """A variable that is not UTF-8 is shown with escapes."""
    assert initializer.run("ftp://host/\udcff") == 2
    assert "ftp://host/\\udcff" in initializer.message


def test_server_that_is_down(initializer: Initializer, server: RangeServer) -> None:
    """A server that stays down ends the fetch after a number of attempts whose waits grow."""
    server.files["/a.bin"] = b"x"
    server.faults.append(AnswerFault(status=500, times=1000))
    assert initializer.run(f"{server.url}/a.bin", TRANSFER_RETRY_SECONDS="1") == 1
    assert "answered 500, 8 times in a row" in initializer.message
    assert initializer.waits[:5] == sorted(initializer.waits[:5])
    assert len(initializer.waits) == 7
    assert max(initializer.waits) <= 60


def test_secrets_of_urls_are_not_printed(
    initializer: Initializer, server: RangeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Signatures in a URL are in no message and in no file."""
    server.files["/a.bin"] = b"x"
    assert initializer.run(f"{server.url}/a.bin?X-Amz-Signature=s3cr3t") == 0
    assert initializer.run(f"{server.url}/b.bin?X-Amz-Signature=s3cr3t") == 2
    everything = capsys.readouterr()
    assert "s3cr3t" not in everything.out + everything.err + initializer.message
    assert "s3cr3t" not in (initializer.target / ".trainer-index.json").read_text()
