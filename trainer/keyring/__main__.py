"""`python -m trainer.keyring`: read a question from standard input and write the answer to standard output.

It is a process of its own for the sake of memory: the library that makes keys is 11 MiB, and no module is unloaded.
"""

from __future__ import annotations

import sys

import msgspec

from trainer.keyring import KeyringQuestion
from trainer.keyring.renewal import answer


def main() -> None:
    """Answer one question.

    Raises:
        msgspec.DecodeError: it is none.
    """
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=KeyringQuestion)
    sys.stdout.buffer.write(msgspec.json.encode(answer(question)))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
