"""Which variables of the contract mean something to which transfer, so that none is ignored in silence."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trainer_initializers.options import TransferOptions

_BUCKETS = frozenset({"s3", "gs", "az"})
_OURS = _BUCKETS | {"hf", "https", "http", "pvc", "file"}
"""Others are served by packages that have variables of their own."""
_SCHEMES = {
    **dict.fromkeys(("ENDPOINT", "ENDPOINT_URL"), _BUCKETS | {"hf"}),
    **dict.fromkeys(("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "ROLE_ARN"), frozenset({"s3"})),
    "ACCESS_TOKEN": frozenset({"hf", "gs", "https", "http"}),
    "PVC_PATH": frozenset({"pvc"}),
    # Of the data cache, and of images that load a model before they keep it.
    **dict.fromkeys(("CACHE_IMAGE", "IAM_ROLE", "METADATA_LOC", "TRANSFORMER_TYPE"), frozenset[str]()),
    **dict.fromkeys(("CLUSTER_SIZE", "HEAD_CPU", "HEAD_MEM", "WORKER_CPU", "WORKER_MEM"), frozenset[str]()),
}
"""The schemes of the variables that not all have a use for."""
_OF_ALL = (
    *("STORAGE_URI", "SPLIT", "ALLOW_PATTERNS", "IGNORE_PATTERNS", "TERMINATION_MESSAGE_PATH"),
    *("TRANSFER_PATH", "TRANSFER_CONNECTIONS", "TRANSFER_TIMEOUT_SECONDS", "TRANSFER_RETRY_SECONDS"),
)
_OF_PROVIDERS = ("AWS_", "AZURE_", "GOOGLE_", "HF_")
_SIMILAR = 0.88
"""Of two names: SPLITS and SPLIT are, REGION and AWS_REGION are not."""


def unused_variables(options: TransferOptions) -> Iterator[str]:
    """What to say of variables that are set and change nothing, one sentence each."""
    scheme = options.location.scheme
    for name in sorted(name for name, value in options.environ.items() if value):
        if name in _SCHEMES:
            if scheme in _OURS and scheme not in _SCHEMES[name]:
                yield f"{name} is set, and means nothing to {options.command} with {scheme}://"
        elif name == "TRANSFER_CONNECTIONS" and options.command == "export":
            yield f"{name} is set, and means nothing to an export"
        elif name not in _OF_ALL and not name.startswith(_OF_PROVIDERS):
            for other in get_close_matches(name, [*_SCHEMES, *_OF_ALL], n=1, cutoff=_SIMILAR):
                yield f"{name} is no variable of the initializers: {other} may be meant"
