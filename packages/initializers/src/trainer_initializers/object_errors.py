"""What an error of an object store means for the person whose TrainJob it is."""

from __future__ import annotations

import re

from obstore.exceptions import NotFoundError, PermissionDeniedError, PreconditionError, UnauthenticatedError

from trainer_initializers.errors import InterruptedTransferError, TransferError, UnavailableSourceError
from trainer_initializers.options import TransferOptions

_CODE = re.compile(r"<Code>(\w+)</Code>")
_REDIRECT = re.compile(r"received redirect without LOCATION", re.IGNORECASE)
"""What the library says of the answer of a bucket in another region."""
_STATUS = re.compile(r"status code: (\d{3})")
_IDENTITY = (
    *("169.254.", "latest/api/token", "latest/meta-data", "metadata.google.internal"),
    "Error performing token request",  # of Azure, whose variables can name another place
)
"""What the library says of the identity of a node, which it asks for where there are no credentials."""
_CREDENTIALS = {
    "s3": "ACCESS_KEY_ID and SECRET_ACCESS_KEY by secretRef, or AWS_SKIP_SIGNATURE=true for a public bucket",
    "gs": "GOOGLE_SERVICE_ACCOUNT_KEY by secretRef, or GOOGLE_SKIP_SIGNATURE=true for a public bucket",
    "az": "AZURE_STORAGE_ACCOUNT_KEY by secretRef, or AZURE_SKIP_SIGNATURE=true for a public container",
}


def translate(error: Exception, options: TransferOptions) -> TransferError | InterruptedTransferError:
    """The error to raise for one of obstore."""
    text = str(error)
    code = found[1] if (found := _CODE.search(text)) else ""
    status = found[1] if (found := _STATUS.search(text)) else ""
    shown, credentials = options.shown, _CREDENTIALS[options.location.scheme]
    if code == "NoSuchBucket":
        return TransferError(f"{shown}: there is no such bucket: check storageUri, ENDPOINT and REGION")
    if code == "ContainerNotFound":
        return TransferError(f"{shown}: there is no such container: check storageUri and AZURE_STORAGE_ACCOUNT_NAME")
    if code in {"PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect"} or _REDIRECT.search(text):
        found = re.search(r"<Region>([\w-]+)</Region>", text)
        region = f", {found[1]}" if found else ""
        return TransferError(f"{shown}: the bucket is in another region: set REGION to its region{region}")
    if code in {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}:
        return TransferError(f"{shown}: the credentials are wrong or expired ({code}): give {credentials}")
    if any(word in text for word in _IDENTITY):
        return TransferError(f"{shown}: there are no credentials: give {credentials}")
    if isinstance(error, NotFoundError | FileNotFoundError) or status == "404":
        return TransferError(f"{shown} does not exist (404): check storageUri")
    if isinstance(error, UnauthenticatedError | PermissionDeniedError | PermissionError) or status in {"401", "403"}:
        return TransferError(f"{shown}: access is refused ({code or status or 403}): grant it, or give {credentials}")
    if isinstance(error, PreconditionError):
        return UnavailableSourceError(f"{shown} has changed while it was fetched: start again")
    return InterruptedTransferError(f"{shown}: {_first(text)}")


def translate_configuration(error: Exception, options: TransferOptions) -> TransferError:
    """The error to raise where obstore cannot use the variables, such as a key that is no base64."""
    credentials = _CREDENTIALS[options.location.scheme]
    return TransferError(f"{options.shown}: a variable cannot be used ({_first(str(error))}): give {credentials}")


def _first(text: str) -> str:
    """The message without the debugging output that obstore appends."""
    return text.partition("\n\nDebug source")[0].strip()[:400]
