"""The words by which a name says that its value is secret: of a variable, an option, a field, a header or a parameter.

A name is taken apart into words, at capitals and at what is neither letter nor digit: `hubToken`, `HUB_TOKEN` and
`--hub-token` are one name, `tokenizer` has no token in it, and `secretName` says after the secret that it is none.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PASSWORDS = frozenset({"password", "passwd", "passphrase", "passcode", "pwd", "secret"})
"""What may be secret as a number, too."""
_WORDS = _PASSWORDS | {
    "token", "credential", "cred", "authorization", "auth", "cookie", "pass", "jwt", "bearer", "dsn", "webhook",
    "signature", "sig", "apikey", "accesskey", "secretkey", "privatekey",
}  # fmt: skip
_ENDS_OF_WORDS = ("password", "passwd", "passphrase", "token", "secret", "apikey", "credential")
"""Names are written together as well: `PGPASSWORD`, `accesstoken`."""
_SECRET_KEYS = frozenset({
    "access", "account", "anthropic", "api", "auth", "aws", "client", "comet", "deploy", "encryption", "hf", "hmac",
    "host", "kaggle", "license", "master", "neptune", "ngc", "openai", "private", "rsa", "secret", "service", "shared",
    "sign", "signing", "ssh", "ssl", "storage", "subscription", "tls", "wandb",
})  # fmt: skip
"""What a key is called that is secret."""
_OPEN_KEYS = frozenset({"public", "primary", "sort", "partition", "foreign", "group", "cache", "index", "topology"})
"""And what it is called where it is not, of the keys in names of capitals alone, such as `ENCODER_KEY`."""
_OPEN_TOKENS = frozenset({
    "added", "bos", "cls", "decoder", "eos", "forced", "image", "mask", "max", "min", "new", "num", "pad",
    "prompt", "sep", "special", "stop", "total", "unk",
})  # fmt: skip
"""What tokens of a tokenizer are called."""
_NOT_ITSELF = frozenset({
    "algorithm", "audience", "class", "classification", "column", "count", "dim", "dir", "directory", "disabled",
    "driver",
    "embedding", "embeddings", "enabled", "endpoint", "expiration", "expires", "expiry", "field", "file",
    "files", "host", "id", "ids", "index", "issuer", "label", "labels", "len", "length", "level", "limit",
    "loss", "method", "mode", "mount", "name", "names", "namespace", "path", "paths", "per", "policy",
    "provider", "rate", "ratio", "ref", "refs", "request", "requests", "required", "seconds", "selector",
    "size", "stdin", "store", "timeout", "ttl", "type", "types", "uri", "url", "version",
})  # fmt: skip
"""What stands behind a secret in the name of something about it."""
_SECRET_ITSELF = {"secret": {"id"}, "webhook": {"url", "uri"}, "dsn": {"url", "uri"}}
"""Of these it is the secret."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME = 256
"""Characters of a name that are looked at, and kept with what was found: tenants choose the names."""
_NO_SECRET = re.compile(r"(?i:true|false|null|none|nil|yes|no|on|off|~)?")
_NUMBER = re.compile(r"[-+~<>]?[0-9][0-9.,_]{0,20}(?:e[-+]?[0-9]{1,3})?\ ?(?:[A-Za-z%/]{0,6}|/\ ?[0-9][0-9.,_]{0,20})")

CREDENTIAL_NAMES = (
    r"token|authorization|password|passwd|passphrase|cookie|api[-_]?key|private[-_]?key|key[-_]?data"
    r"|client[-_]?secret|secret[-_]?access[-_]?key"
)
"""Regular expression of those words that are never about something else, for our own log, where `secret` is a name."""


def names_secret(name: str) -> bool:
    """Whether a name is one of a secret."""
    return _secret_word(name[:_LONGEST_NAME]) is not None


def is_secret(name: str, value: str) -> bool:
    """Whether a value is secret by its name; none is what says yes or no, nor a number of tokens."""
    word = _secret_word(name[:_LONGEST_NAME])
    if word is None or _NO_SECRET.fullmatch(value):
        return False
    return word in _PASSWORDS or _NUMBER.fullmatch(value) is None


@lru_cache(maxsize=4096)
def _secret_word(name: str) -> str | None:
    """The word of a name that says that it is one of a secret."""
    words = [word.lower() for word in _WORD.findall(name)]
    for place in range(len(words)):
        found = _secret_at(words, place, is_of_capitals=name.isupper())
        if found is not None and not (set(words[place + 1 :]) & _NOT_ITSELF) - _SECRET_ITSELF.get(found, set()):
            return found
    return None


def _secret_at(words: list[str], place: int, *, is_of_capitals: bool) -> str | None:
    before = words[place - 1] if place else ""
    word = words[place] if words[place] == "pass" else words[place].removesuffix("s")
    if word == "key":
        is_last = place == len(words) - 1
        is_secret_key = before in _SECRET_KEYS or (is_of_capitals and is_last and before not in _OPEN_KEYS)
        return word if is_secret_key else None
    if word == "pat":
        return word if before else None
    if (before, word) in {("connection", "string"), ("conn", "string"), ("conn", "str")}:
        return word
    if word not in _WORDS:
        word = next((end for end in _ENDS_OF_WORDS if word.endswith(end)), "")
    if not word or (word == "token" and before in _OPEN_TOKENS):
        return None
    return word
