"""The files that travel with a script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainer.cli.errors import BadInputError
from trainer.cli.run import folder as folder_module
from trainer.cli.run.folder import files_of_folder, files_of_script


def write(folder: Path, **contents: str) -> None:
    """Write files; `__` in a name is a slash and `_DOT_` a dot."""
    for name, content in contents.items():
        file = folder / name.replace("__", "/").replace("_DOT_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def names(folder: Path) -> list[str]:
    return [file.name for file in files_of_folder(folder)]


def test_ignored(tmp_path: Path) -> None:
    """Rules of .trainerignore, of git at every level, and what tools make stay behind; ! takes something back."""
    write(
        tmp_path,
        _DOT_git__config="",
        _DOT_git__info__exclude="*.private",
        project__notes_DOT_private="",
        _DOT_gitignore="*.log\n/hidden/\nkept.bin\n",
        project__train_DOT_py="",
        project__a_DOT_log="",
        project__data__big_DOT_csv="",
        project__data__small_DOT_csv="",
        project__hidden__key="",
        project____pycache____train_DOT_pyc="",
        project__kept_DOT_bin="",
        project__venv__pyvenv_DOT_cfg="",
        project__sub__x_DOT_tmp="",
        project__sub___DOT_gitignore="*.tmp",
        project___DOT_trainerignore="data/*\n!data/small.csv\n!kept.bin\n",
    )

    assert names(tmp_path / "project") == ["data/small.csv", "hidden/key", "kept.bin", "train.py"]


def test_without_repository(tmp_path: Path) -> None:
    """Above a folder that is in no repository nothing counts."""
    write(tmp_path, _DOT_gitignore="*", project__train_DOT_py="")
    assert names(tmp_path / "project") == ["train.py"]


def test_script_that_is_a_link(tmp_path: Path) -> None:
    """What it points at is not packed, so that the file itself travels."""
    write(tmp_path, src__train_DOT_py="print()")
    (tmp_path / "train.py").symlink_to("src/train.py")
    (packed,) = files_of_script(tmp_path / "train.py", [])
    assert (packed.name, packed.link, packed.size) == ("train.py", "", 7)


@pytest.mark.parametrize("is_worktree", [True, False], ids=["worktree", "submodule"])
def test_git_directory_elsewhere(tmp_path: Path, is_worktree: bool) -> None:
    """What git ignores in a worktree or a submodule stands where its file .git leads."""
    own = tmp_path / "main" / ".git" / "of"
    own.mkdir(parents=True)
    (exclude := (own.parent if is_worktree else own) / "info" / "exclude").parent.mkdir()
    exclude.write_text("*.private\n")
    if is_worktree:
        (own / "commondir").write_text("..\n")
    write(tmp_path / "copy", train_DOT_py="", a_DOT_private="", _DOT_git="gitdir: ../main/.git/of\n")
    assert names(tmp_path / "copy") == ["train.py"]


@pytest.mark.parametrize("pattern", ["!", "\\"])
def test_wrong_pattern(tmp_path: Path, pattern: str) -> None:
    """The message names the file and the line."""
    write(tmp_path, _DOT_trainerignore=f"*.log\n{pattern}\n")
    with pytest.raises(BadInputError, match=r"\.trainerignore: line 2: .* is no pattern of \.gitignore"):
        files_of_folder(tmp_path)


def test_ignore_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file."""
    write(tmp_path, _DOT_trainerignore="")

    def read_text(path: Path, **_options: str) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "read_text", read_text)
    with pytest.raises(BadInputError, match=r"\.trainerignore cannot be read: Permission denied"):
        files_of_folder(tmp_path)


def test_script_alone(tmp_path: Path) -> None:
    """A script travels with the modules that it imports and its requirements, and nothing else."""
    write(tmp_path, train_DOT_py="", model_DOT_py="", lib__a_DOT_py="", data_DOT_csv="", requirements_DOT_txt="")
    found = files_of_script(tmp_path / "train.py", [tmp_path / "model.py", tmp_path / "lib"])
    assert [file.name for file in found] == ["lib/a.py", "model.py", "requirements.txt", "train.py"]


def test_links(tmp_path: Path) -> None:
    """A link into the folder stays a link, relative to its own place."""
    write(tmp_path, data__a_DOT_txt="a", sub__b_DOT_txt="b")
    (tmp_path / "sub" / "link").symlink_to(tmp_path / "data")
    links = {file.name: file.link for file in files_of_folder(tmp_path)}
    assert links == {"data/a.txt": "", "sub/b.txt": "", "sub/link": "../data"}


@pytest.mark.parametrize("target", ["runs/42/best.pt", "latest.log"])
def test_link_to_what_is_ignored(tmp_path: Path, target: str) -> None:
    """A link to an ignored file travels as it is, whether the file is there or not."""
    write(tmp_path, _DOT_gitignore="*.log\n/runs/\n", train_DOT_py="")
    (tmp_path / "link").symlink_to(target)
    assert {file.name: file.link for file in files_of_folder(tmp_path)} == {"link": target, "train.py": ""}


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        pytest.param("/etc/passwd", "is a symbolic link that leaves the folder", id="absolute"),
        pytest.param("../outside", "is a symbolic link that leaves the folder", id="relative"),
        pytest.param("missing", "is a symbolic link to nothing", id="broken"),
        pytest.param("link", "cannot be read", id="circle"),
    ],
)
def test_refused_links(tmp_path: Path, target: str, problem: str) -> None:
    """A link that could not be followed on a node is refused, unless it is ignored."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "outside").write_text("")
    (project / "link").symlink_to(target)

    with pytest.raises(BadInputError, match=problem):
        files_of_folder(project)

    (project / ".trainerignore").write_text("link")
    assert names(project) == []


def test_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that cannot be read is named, with the remedy."""
    write(tmp_path, train_DOT_py="", locked="")
    readable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and readable(path, mode))
    with pytest.raises(BadInputError, match=r"locked of .* cannot be read: Permission denied: make it readable"):
        files_of_folder(tmp_path)


def test_special_files(tmp_path: Path) -> None:
    """A pipe has no content that could travel."""
    write(tmp_path, train_DOT_py="")
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["train.py"]


def test_too_large(tmp_path: Path) -> None:
    """A folder that never fits is refused before it is read, with its largest files."""
    write(tmp_path, train_DOT_py="x")
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(BadInputError) as caught:
        files_of_folder(tmp_path)
    assert "at most 64.0 MiB are packed; the largest files are weights.bin (65.0 MiB), train.py (1 byte)" in str(
        caught.value
    )
    assert ".trainerignore" in str(caught.value)


def test_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home directory is left after its first files."""
    monkeypatch.setattr(folder_module, "MOST_FILES", 2)
    write(tmp_path, a="", b="", c="", d="")
    with pytest.raises(BadInputError, match="has more than 2 files"):
        files_of_folder(tmp_path)


SECRETS = [
    ".env", ".env.local", ".env.production", ".envrc", "prod.env", "id_rsa", "id_ed25519", "id_ecdsa_sk", "id_work",
    "ID_RSA", "id_rsa.old", ".git-credentials", ".pgpass", ".vault-token", ".netrc", "_netrc", ".npmrc", ".pypirc",
    ".ssh/", ".aws/", ".kube/", ".docker/", ".huggingface/", ".azure/", ".gnupg/", ".config/gcloud/", ".secrets/",
    "secrets/", ".cache/huggingface/token", "credentials", "credentials.json", "credentials-prod.json", ".credentials",
    "application_default_credentials.json", "service-account.json", "service_account_key.json", "gcp-key.json",
    "private_key.txt", "api_key.txt", "rootkey.csv", "team_accessKeys.csv", "a-firebase-adminsdk-1-2.json", ".authinfo",
    ".dockerconfigjson", "kaggle.json", "kubeconfig", "dev.kubeconfig", "terraform.tfstate", "terraform.tfstate.backup",
    "prod.tfvars", "tls.key", "key.pem", "store.jks", "store.p12", "store.pfx", "my.keystore", "vault.kdbx",
    "user.keytab", "client_secret_1.json", "secrets.yaml", "secrets.sh", "my-secret", "hf_secret.txt", "passwords.txt",
    ".htpasswd", ".bash_history", "hf_token", "rclone.conf", ".s3cfg", ".boto", "token", "token.txt", ".tokens",
    "token.json", "hf_token.txt", "access-token", "github.token", "apikey", "openai_key.txt", "deploy_key",
    "github_rsa", "work_ed25519", "privatekey.txt", "wandb_key", ".wandb_api_key", "accessKeys.csv",
    "firebase-adminsdk-x1.json", "service_principal.json", "my-project-123456-0a1b2c3d4e5f.json", "kubeconfig.yaml",
    "prod-kube-config.yml", ".vault_pass", ".modal.toml", ".comet.config", ".pg_service.conf", ".dev.vars",
]  # fmt: skip
HARMLESS = [
    "secrets.py", "secretary.py", "secretary.csv", "credentials_test.py", "password_hash.py", "id_mapping.py",
    "id_mapping.json", "id_to_label.txt", "tokenizer.json", "tokens.txt", "environment.yml", "env.py", ".env.example",
    "keyboard.py", "api_keywords.json", "keys.csv", "monkey.json", "private_keys.py",
    "training_history", "secret_sharing/rounds.csv", "config.json",
    "service_account.py", "serviceaccount.yaml", "data/.config/app.toml", "secret_santa.ipynb", "kubeconfig.md",
    "added_tokens.json", "special_tokens_map.json", "mask_token.txt", "token_counts.csv", "keys.txt", "public_key.txt",
    "train-0a1b2c3d4e5f.json", "api_keywords.txt", "kubeconfig.py", "keys.json", "monkey", "adversary", "token.py",
    "_secret.cpython-311-x86_64-linux-gnu.so",
]  # fmt: skip


def touch(folder: Path, name: str) -> None:
    """Make a file, or for a name with a slash at its end a folder with a file in it."""
    file = folder / name / "config" if name.endswith("/") else folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def test_secrets(tmp_path: Path) -> None:
    """What usually holds secrets stays behind and is named, also in a folder that a script imports."""
    write(tmp_path, train_DOT_py="", pkg__a_DOT_py="")
    for name in SECRETS:
        touch(tmp_path / "pkg", name)
    left_out: list[str] = []

    of_folder = files_of_folder(tmp_path, left_out=left_out.append)
    of_script = files_of_script(tmp_path / "train.py", [tmp_path / "pkg"], left_out=left_out.append)

    assert [file.name for file in of_folder] == [file.name for file in of_script] == ["pkg/a.py", "train.py"]
    assert sorted(left_out) == sorted([f"pkg/{name}" for name in SECRETS] * 2)


def test_harmless(tmp_path: Path) -> None:
    """A name that only resembles one of a secret travels."""
    for name in HARMLESS:
        touch(tmp_path, name)
    assert names(tmp_path) == sorted(HARMLESS)


def test_package_called_secrets(tmp_path: Path) -> None:
    """A folder of that name with Python modules is code, of which the other names decide."""
    write(tmp_path, secrets__a_DOT_py="", secrets__b_DOT_json="", secrets__api_DOT_key="")
    assert names(tmp_path) == ["secrets/a.py", "secrets/b.json"]


@pytest.mark.parametrize(
    ("ignore_file", "line", "packed", "said"),
    [
        pytest.param(".trainerignore", "!.env", [".env"], [".aws/"], id="file"),
        pytest.param(".trainerignore", "!.aws/", [".aws/config"], [".env"], id="folder"),
        pytest.param(".gitignore", "!.env", [], [".aws/", ".env"], id="kept by git"),
    ],
)
def test_secrets_that_are_asked_for(
    tmp_path: Path, ignore_file: str, line: str, packed: list[str], said: list[str]
) -> None:
    """A line with ! in .trainerignore packs them; those that are ignored anyway are not spoken of."""
    touch(tmp_path, ".aws/")
    touch(tmp_path, ".env")
    (tmp_path / ignore_file).write_text(line)
    left_out: list[str] = []
    assert [file.name for file in files_of_folder(tmp_path, left_out=left_out.append)] == packed
    assert left_out == said


def test_link_to_a_secret(tmp_path: Path) -> None:
    """A link to one travels as a link, without the content."""
    write(tmp_path, _DOT_env="TOKEN=hidden")
    (tmp_path / "settings").symlink_to(".env")
    (packed,) = files_of_folder(tmp_path)
    assert (packed.name, packed.link, packed.size) == ("settings", ".env", 0)
