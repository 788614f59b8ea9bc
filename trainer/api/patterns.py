"""Regular expressions of our schemas, each with its meaning in words for error messages."""

from __future__ import annotations

import functools
import re
from typing import Final

DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
HOST_LABEL: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
JOB_NAME: Final = "^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$"
LABEL_KEY: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)
LABEL_VALUE: Final = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"
ENV_NAME: Final = "^[ -<>-~]+$"
ANY_QUANTITY: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The pattern of quantities in the schemas of Kubernetes, with exponents of any size."""
QUANTITY: Final = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$"
"""What is as large as exponents of two digits allow is refused where amounts are read."""
NUMBER_OF_PROCESSES: Final = "^(auto|cpu|gpu|[1-9][0-9]*)$"
STORAGE_URI: Final = "^([A-Za-z][A-Za-z0-9+.-]*://.+)?$"
RULE_NAME: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
ABSOLUTE_PATH: Final = "^/"
PORT_NAME: Final = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$"
OBJECT_NAME: Final = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$"
IMAGE: Final = r"^(\S(.*\S)?)?$"
DECIMAL_NUMBER: Final = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
CONTAINER_RESOURCE: Final = r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$"

WORDS: Final = {
    DNS_LABEL: "must consist of lower-case letters, digits and -, and start and end with a letter or digit",
    HOST_LABEL: "must consist of lower-case letters, digits and -, start with a letter and end with a letter or digit",
    JOB_NAME: "must consist of letters, digits and -, and start and end with a letter or digit",
    LABEL_KEY: "must be a label key such as topology.kubernetes.io/rack",
    LABEL_VALUE: "must be a label value: letters, digits, -, _ and ., starting and ending with a letter or digit",
    ENV_NAME: "must consist of printable ASCII characters other than =",
    QUANTITY: "must be a quantity such as 2, 500m or 4Gi",
    NUMBER_OF_PROCESSES: "must be auto, cpu, gpu or a positive integer",
    STORAGE_URI: "must be a URI such as s3://bucket/path or hf://repository",
    RULE_NAME: "must start with a letter, end with a letter, digit or _, and contain only these and the characters , :",
    ABSOLUTE_PATH: "must be an absolute path",
    PORT_NAME: "must consist of lower-case letters, digits and -, and start and end with a letter or digit",
    OBJECT_NAME: "must consist of lower-case letters, digits, - and ., and start and end with a letter or digit",
    IMAGE: "must not start or end with white space",
    DECIMAL_NUMBER: "must be a number such as 10, 0.5 or 1e-5",
    CONTAINER_RESOURCE: "must be limits or requests of cpu, memory, ephemeral-storage or huge pages: limits.cpu",
}


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern as the API server does: `$` matches only the very end, never before a final line break."""
    end = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    return re.compile(end, re.ASCII)
