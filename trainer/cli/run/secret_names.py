"""Names of files and folders that usually hold passwords, tokens or private keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_FILE: Final = re.compile(
    r"""
    \.env.* | .*\.env                                                   # dotenv, docker --env-file
    | id_(rsa|dsa|ecdsa|ed25519|xmss).* | id_[^.]*                      # SSH; no id_mapping.json
    | [._]netrc | \.git-credentials | \.pgpass | \.my\.cnf | \.mylogin\.cnf | \.htpasswd | \.\w+_history
    | \.authinfo(\.gpg)? | \.npmrc | \.pypirc | \.vault-token | \.vault_pass | \.docker(cfg|configjson)
    | \.databrickscfg | \.boto | \.s3cfg | rclone\.conf | \.modal\.toml | \.comet\.config | \.pg_service\.conf
    | \.dev\.vars
    | (.*[-_.])?kube-?config(\.ya?ml)? | kaggle\.json | \.tokens? | token(\.(txt|json))?
    | (.*[-_.])?(access|api|auth|bearer|gh|github|gitlab|hf|huggingface|oauth|refresh|wandb)[-_.]?tokens?(\.(txt|json))?
    | .*service[-_]?(account|principal).*\.json | .*firebase-adminsdk.*\.json | .*-\d+-[0-9a-f]{12}\.json
    | (.*[-_.])?(gcp|gcs|sa|api|account)[-_]?keys?\.json | (.*[-_.])?(root|aws_?|access)keys?\.csv
    | (.*[-_.])?(access|api|deploy|openai|private|rsa|ssh|wandb)[-_]?keys?(\.txt)? | .*[-_](rsa|ed25519|ecdsa)
    | .*\.tfstate(\..*)? | .*\.tfvars(\.json)?
    | .*\.(pem|key|p8|p12|pfx|pkcs12|jks|jceks|bks|bcfks|keystore|truststore|keytab|ppk|kdbx|ovpn)
    """,
    re.VERBOSE,
)
_EXAMPLES: Final = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})
"""What repositories show instead of the file with the values."""
_WORD: Final = re.compile(r"secret(?!ar[iy]|i[ov]|ome)|credential|passw(or)?d")
"""Anywhere in the name of a file that is no source text: `secretary` and `secretome` are other words."""
_SOURCE: Final = frozenset(
    {
        ".py", ".pyi", ".pyx", ".pxd", ".ipynb", ".so", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go",
        ".java", ".scala", ".jl", ".r", ".js", ".ts", ".md", ".rst", ".html", ".css",
    }
)  # fmt: skip
"""Suffixes of source text, without which a training would break; shell scripts often export passwords."""
_FOLDER: Final = re.compile(r"\.env.*|\.ssh|\.gnupg|\.aws|\.azure|\.oci|\.kube|\.docker|\.huggingface|\.password-store")
_WORD_FOLDER: Final = re.compile(r"\.?(secret|credential)s?")
"""Unless it has Python modules: then it is the program, and the names of its files decide."""
_PATHS: Final = frozenset(
    {(".config", "gcloud"), (".config", "gh"), ("huggingface", "token"), ("huggingface", "stored_tokens")}
)
"""A folder and what is secret in it."""


def is_secret(path: Path, *, is_folder: bool) -> bool:
    """Whether a file or a folder usually holds secrets, by its name."""
    name = path.name.lower()
    if (path.parent.name.lower(), name) in _PATHS:
        return True
    if is_folder:
        is_word = _WORD_FOLDER.fullmatch(name) is not None
        return _FOLDER.fullmatch(name) is not None or (is_word and not any(path.glob("*.py")))
    if name in _EXAMPLES:
        return False
    return _FILE.fullmatch(name) is not None or (path.suffix.lower() not in _SOURCE and _WORD.search(name) is not None)
