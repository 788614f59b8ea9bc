"""Configuration of the log output, in processes of their own since it is global."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest

START = """
import asyncio, gc, logging, sys, warnings, structlog
from trainer.kube.logs.logs import configure_logging
configure_logging({arguments})
log = structlog.get_logger("trainer.x")
"""

PROGRAM = """
structlog.contextvars.bind_contextvars(controller="test")
log.debug("too quiet")
log.info("started pod", pod="p")
logging.getLogger("library").warning("library %s", "warns")
logging.getLogger("library").debug("body of a secret")
try:
    token = "secret-value"
    raise ValueError("broken")
except ValueError:
    log.exception("failed")
"""

SECRET = "hunter2-hunter2-hunter2"


def run(arguments: str, program: str = PROGRAM, status: int = 0) -> str:
    script = START.replace("{arguments}", arguments) + program
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", status), done.stderr
    return done.stderr


def entries(program: str, arguments: str = "", status: int = 0) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(arguments, program, status).splitlines()]


@pytest.mark.parametrize("arguments", ["", "json=True"], ids=["no-terminal", "asked-for"])
def test_json_lines_for_machines(arguments: str) -> None:
    """Each event, those of libraries included, is one JSON object on stderr with its context."""
    started, library, failed = entries(PROGRAM, arguments)
    assert [entry["event"] for entry in (started, library, failed)] == ["started pod", "library warns", "failed"]
    assert [entry["level"] for entry in (started, library, failed)] == ["info", "warning", "error"]
    assert [entry["logger"] for entry in (started, library, failed)] == ["trainer.x", "library", "trainer.x"]
    assert {entry["controller"] for entry in (started, library, failed)} == {"test"}
    assert started["pod"] == "p"
    assert started["timestamp"].endswith("Z")
    assert "ValueError: broken" in failed["exception"]


LIBRARIES = """
async def reconcile():
    with structlog.contextvars.bound_contextvars(reconcile_id="r"):
        logging.getLogger("aiohttp.client").error("from a library")
        asyncio.get_running_loop().call_exception_handler({"message": "from asyncio", "exception": OSError("lost")})
        warnings.warn("from Python", RuntimeWarning)
        await asyncio.create_task(child())

async def child():
    log.info("from a child task")

asyncio.run(reconcile())
"""


def test_context_reaches_libraries() -> None:
    """What a library, asyncio, Python or a child task logs within a reconcile carries the reconcile's id."""
    found = entries(LIBRARIES)
    assert [entry["reconcile_id"] for entry in found] == ["r"] * 4
    assert [entry["logger"] for entry in found] == ["aiohttp.client", "asyncio", "py.warnings", "trainer.x"]
    assert "OSError: lost" in found[1]["exception"]
    assert "RuntimeWarning: from Python" in found[2]["event"]


def test_crash_is_one_line() -> None:
    """An exception that nobody catches is an event like others, and the exit code stays."""
    [entry] = entries("raise ValueError('broken')", status=1)
    assert (entry["event"], entry["level"]) == ("crashed", "critical")
    assert entry["exception"].endswith("ValueError: broken")


GIVEN_UP = """
from trainer.kube.errors import ConfigurationError, TransportError
async def main():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(fail(ConfigurationError("no kubeconfig")))
        tasks.create_task(fail(TransportError("no answer")))
async def fail(error):
    raise error
asyncio.run(main())
"""


@pytest.mark.parametrize("arguments", ["json=True", "json=False"])
def test_error_of_the_machinery_is_its_message(arguments: str) -> None:
    """It says what to do, so that a traceback, or that of a task group around it, would only hide it."""
    [line] = run(arguments, GIVEN_UP, status=1).splitlines()
    assert "gave up" in line
    assert "no kubeconfig; no answer" in line
    assert "Traceback" not in line


@pytest.mark.parametrize("arguments", ["json=True", "json=False"])
def test_logging_never_fails(arguments: str) -> None:
    """Whoever logs goes on where nobody reads any more."""
    program = """
os.close(2)
log.info("nobody reads this")
log.info("nor this")
print("went on")
"""
    script = START.replace("{arguments}", arguments) + "import os" + program
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "went on\n"


def test_keys_that_are_no_words() -> None:
    """Whatever the keys of a value are, it is logged."""
    [found] = entries("log.info('counted', counts={('a', 1): 2})", "json=True")
    assert found["counts"] == {"('a', 1)": 2}


def test_text_for_people() -> None:
    """Events are readable, without colours outside a terminal, and tracebacks do not show local variables."""
    text = run("json=False")
    assert "started pod" in text
    assert "ValueError: broken" in text
    assert "\x1b" not in text
    assert "secret-value" not in text.replace('token = "secret-value"', "")


@pytest.mark.parametrize(
    ("environment", "colours"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["usual", "no-color"]
)
def test_colours_on_a_terminal(environment: dict[str, str], colours: bool) -> None:
    """A terminal shows text, in colours unless the user does not want them."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", START.replace("{arguments}", "") + 'log.info("started pod")']
    kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    subprocess.run(command, stderr=theirs, check=True, env=kept | environment)
    os.close(theirs)
    text = os.read(ours, 65536).decode()
    os.close(ours)
    assert "started pod" in text
    assert ("\x1b[" in text) is colours


SECRETS = f"""
log.info("sent", headers={{"Authorization": "Bearer {SECRET}"}}, password="{SECRET}")
logging.getLogger("library").warning("sent", extra={{"password": "{SECRET}"}})
"""


@pytest.mark.parametrize("arguments", ["json=True", "json=False"])
def test_credentials_are_redacted(arguments: str) -> None:
    """What is called one in an event is not shown."""
    text = run(arguments, SECRETS)
    assert text.count("sent") == 2
    assert SECRET not in text


def test_level_applies_to_our_events_only() -> None:
    """Debug shows our own details but not those of libraries, which may log bodies."""
    text = run('json=True, level="debug"')
    assert "too quiet" in text
    assert "body of a secret" not in text


def test_unknown_level_is_refused() -> None:
    """The message lists the levels."""
    assert "log level 'loud' is not one of debug, info, warning, error" in run('level="loud"', status=1)


STALL = """
for number in range(20_000):
    log.info("a line of some length", number=number)
print("done", flush=True)
sys.stdin.read()
"""


def test_stalled_reader_does_not_stall_the_process() -> None:
    """While nobody reads stderr the process works on; once somebody does, it says how many lines it has dropped."""
    command = [sys.executable, "-c", START.replace("{arguments}", "") + STALL]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "done\n"
        found: list[dict[str, Any]] = []
        while "dropped" not in (entry := json.loads(process.stderr.readline())):
            found.append(entry)
        process.stdin.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
    numbers = [entry["number"] for entry in found]
    assert numbers == sorted({*numbers})
    assert len(found) + entry["dropped"] == 20_000
