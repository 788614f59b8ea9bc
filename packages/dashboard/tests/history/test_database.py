"""Opening databases, and bringing them to the present version."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

import trainer_dashboard.history
from packages.dashboard.tests.history.test_queries import row
from trainer.kube.errors import ConfigurationError
from trainer_dashboard.history.database import Database
from trainer_dashboard.history.errors import HistoryError, LostFileError, RefusedError, TakenOverError
from trainer_dashboard.history.queries import History
from trainer_dashboard.history.schema import HEAD, METADATA, TRAININGS, number
from trainer_dashboard.history.statements import put


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_migrations(database: Database) -> None:
    """The migrations make the tables that the code uses, and running them again changes nothing."""

    def differences(connection: Connection) -> list[object]:
        found: list[object] = compare_metadata(MigrationContext.configure(connection), METADATA)
        return found

    assert database.read(differences) == []
    database.migrate()
    database.check()


def test_head() -> None:
    """The version that the code expects is that of the newest migration."""
    scripts = ScriptDirectory(str(Path(trainer_dashboard.history.__file__).parent / "migrations"))
    assert scripts.get_current_head() == HEAD


def execute(database: Database, *statements: str) -> None:
    for statement in statements:
        database.write(lambda connection, statement=statement: connection.execute(text(statement)))  # type: ignore[misc]


OF_TRIALS = ("sweep_uid", "sweep", "trial", "assignment")


def test_older(url: str) -> None:
    """A database of the first version is refused for reading, and is brought up to date with what it has."""
    database = Database(url)
    database.migrate()
    revert = (
        *(f"DROP INDEX {name}" for name in ("trainings_by_sweep", "trainings_of_sweep")),
        *(f"ALTER TABLE trainings DROP COLUMN {name}" for name in OF_TRIALS),
        *(f"DROP TABLE {name}" for name in ("sweep_notifications", "sweeps")),
        "DROP INDEX trainings_by_end",
        "ALTER TABLE trainings DROP COLUMN forgotten",
        "UPDATE alembic_version SET version_num = '0001'",
    )
    execute(database, *revert)
    columns = [name for name in row("a", 0) if name not in {"forgotten", *OF_TRIALS}]
    values = {name: row("a", 0)[name] for name in columns}
    insert = text(f"INSERT INTO trainings ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})")
    database.write(lambda connection: connection.execute(insert, values))
    with pytest.raises(HistoryError, match="older version"):
        database.check()
    database.migrate()
    database.check()
    assert [record.uid for record in History(database).trainings()] == ["a"]
    database.close()


@pytest.mark.parametrize("version", ["9999", "9999_9998"])
def test_newer(database: Database, version: str) -> None:
    """A database of a newer version is refused for reading and writing, unless it says otherwise."""
    execute(database, f"UPDATE alembic_version SET version_num = '{version}'")
    for use in (database.check, database.migrate):
        with pytest.raises(HistoryError, match=rf"version {version}, newer than .*: update it"):
            use()


def test_newer_that_has_only_added(database: Database) -> None:
    """What a newer version has only added to is read and written, and stays of that version."""
    newer = f"9999_{number(HEAD)}"
    execute(
        database,
        "ALTER TABLE trainings ADD COLUMN colour TEXT",
        "ALTER TABLE trainings ADD COLUMN weight INTEGER NOT NULL DEFAULT 7",
        "CREATE TABLE further (uid TEXT PRIMARY KEY)",
        f"UPDATE alembic_version SET version_num = '{newer}'",
    )
    database.migrate()
    database.check()
    database.write(lambda connection: put(connection, TRAININGS, [row("a", 0)]))
    assert [record.uid for record in History(database).trainings()] == ["a"]
    stored = "SELECT version_num, weight FROM alembic_version, trainings"
    assert database.read(lambda connection: tuple(connection.execute(text(stored)).one())) == (newer, 7)


def test_server_that_is_gone(server_url: str) -> None:
    """A server that does not answer any more is given up after a minute, or when the URL says."""
    database = Database(f"{server_url}&keepalives_idle=5")

    def parameters(connection: Connection) -> dict[str, str]:
        driver: Any = connection.connection.driver_connection
        return dict(driver.info.get_parameters())

    found = database.read(parameters)
    names = ("keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")
    assert [found[name] for name in names] == ["5", "10", "3", "60000"]
    database.close()


def test_rights_of_the_file(tmp_path: Path) -> None:
    """The file of SQLite is its owner's alone, with what SQLite puts beside it."""
    database = Database(f"sqlite:///{tmp_path}/state/history.db")
    database.migrate()
    files = list((tmp_path / "state").iterdir())
    assert len(files) > 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    database.close()


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("nonsense hunter2", id="no URL"),
        pytest.param("mysql://me:hunter2@host/db", id="other database"),
        pytest.param("sqlite://", id="in memory"),
        pytest.param("postgresql://me:hunter2@host:port/db", id="port"),
    ],
)
def test_wrong_url(url: str) -> None:
    """A wrong URL is refused with the forms that are right, and without its password."""
    with pytest.raises(ConfigurationError, match="must be sqlite:////absolute/path") as caught:
        Database(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        pytest.param("postgresql://me:hunter2@host/db", "postgresql+psycopg://me:***@host/db", id="password"),
        pytest.param("postgresql://host/db?password=hunter2", "postgresql+psycopg://host/db", id="option"),
        pytest.param("sqlite:////a/b.db", "sqlite:////a/b.db", id="file"),
    ],
)
def test_name(url: str, name: str) -> None:
    """What the log calls a database has no secret in it."""
    assert Database(url).name == name


@pytest.mark.parametrize("cluster", ["cluster-uid", "https://api.example.com:6443/" + "a" * 300])
def test_right_to_record(database: Database, cluster: str) -> None:
    """One process at a time records a cluster, whatever it is called, and the next one when that has ended."""
    with database.recording(cluster), pytest.raises(HistoryError, match="another"), database.recording(cluster):
        pass
    for _ in range(5):
        with database.recording(cluster):
            pass


END = "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND granted"


def lose_session(database: Database) -> None:
    """End the sessions that hold locks, as a server does that restarts or ends idle sessions."""
    assert database.read(lambda connection: connection.execute(text(END)).all())


def version(connection: Connection) -> Any:
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()


def change(connection: Connection) -> None:
    connection.execute(text("UPDATE alembic_version SET version_num = 'changed'"))


def test_lost_right(server_database: Database, server_url: str) -> None:
    """A recorder whose session was lost takes the right again before it writes, so that no other one gets it."""
    other = Database(server_url)
    with server_database.recording("a"):
        for _ in range(2):
            lose_session(server_database)
            assert server_database.write(version) == HEAD
            with pytest.raises(HistoryError, match="another"), other.recording("a"):
                pass
    with other.recording("a"):
        pass
    other.close()


def test_taken_over(server_database: Database, server_url: str) -> None:
    """A recorder that has lost the right to another one writes nothing any more, as often as it tries."""
    other = Database(server_url)
    with server_database.recording("a"):
        lose_session(server_database)
        with other.recording("a"):
            for _ in range(2):
                with pytest.raises(TakenOverError, match="has taken over"):
                    server_database.write(change)
            assert server_database.read(version) == HEAD
            assert other.write(version) == HEAD
    other.close()


def overwrite(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"x" * file.stat().st_size)


def backup_beside(file: Path) -> Path:
    """Another history, whose tables are the same."""
    other = Database(f"sqlite:///{file.parent}/other.db")
    other.migrate()
    other.close()
    return file.with_name("other.db")


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(overwrite, id="overwritten"),
        pytest.param(lambda file: file.write_bytes(b""), id="truncated"),
        pytest.param(lambda file: file.write_bytes(backup_beside(file).read_bytes()), id="overwritten-by-a-backup"),
        pytest.param(lambda file: file.unlink(), id="deleted"),
        pytest.param(lambda file: backup_beside(file).replace(file), id="replaced"),
    ],
)
def test_lost_file(tmp_path: Path, lose: Callable[[Path], object]) -> None:
    """What is recorded to a file that is lost is refused at once, and not kept where nobody finds it."""
    file = tmp_path / "history.db"
    database = Database(f"sqlite:///{file}")
    database.migrate()
    with database.recording("here"):
        database.write(lambda connection: put(connection, TRAININGS, [row(f"{each}", 1.0) for each in range(2000)]))
        database.write(lambda connection: put(connection, TRAININGS, [row("next", 1.0)]))
        lose(file)
        with pytest.raises(LostFileError, match=r"history\.db was deleted, replaced or overwritten .*; put a backup"):
            database.write(lambda connection: put(connection, TRAININGS, [row("late", 1.0)]))
    database.close()


READER = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*next(c.execute('SELECT count(*) FROM trainings')))"
)


def test_readers(tmp_path: Path) -> None:
    """What is recorded is there for other processes that open and close the file meanwhile, also after a new start."""
    file = tmp_path / "history.db"
    database = Database(f"sqlite:///{file}")
    for start in range(2):
        database.migrate()
        with database.recording("here"):
            for number in range(3):
                rows = [row(f"{start}-{number}", 1.0)]
                database.write(lambda connection: put(connection, TRAININGS, rows))  # noqa: B023
                found = subprocess.run([sys.executable, "-c", READER, file], capture_output=True, text=True, check=True)
                assert int(found.stdout) == 3 * start + number + 1
    database.close()


def test_damaged_file(tmp_path: Path) -> None:
    """A file that is damaged beyond its first page is no refusal of what is written."""
    file = tmp_path / "history.db"
    database = Database(f"sqlite:///{file}")
    database.migrate()
    database.close()
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"x" * (file.stat().st_size - 4096))
    with pytest.raises(
        LostFileError, match=r"history\.db cannot be used: database disk image is malformed; put a backup"
    ):
        database.write(lambda connection: put(connection, TRAININGS, [row("late", 1.0)]))
    database.close()


def test_read_only(server_database: Database) -> None:
    """A server that is read-only, as after a failover, cannot be used now, and refuses nothing for good."""

    def write(connection: Connection) -> None:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0'"))

    with pytest.raises(HistoryError, match="read-only") as caught:
        server_database.write(write)
    assert not isinstance(caught.value, RefusedError)


def test_unreachable() -> None:
    """A server that does not answer is an error of one line without the password."""
    database = Database("postgresql://me:hunter2@127.0.0.1:1/db")
    with pytest.raises(HistoryError) as caught:
        database.check()
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)
