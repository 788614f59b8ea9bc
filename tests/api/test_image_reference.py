"""Which texts are references to images; the cases are those of distribution/reference."""

from __future__ import annotations

import pytest

from trainer.api.image_reference import check_image

DIGEST = "sha256:" + "0f" * 32


@pytest.mark.parametrize(
    "image",
    [
        "",
        "python",
        "python:3.11-slim",
        "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime",
        "ghcr.io/kubeflow/trainer/deepspeed-runtime:v2.3.0",
        "localhost/a",
        "localhost:5000/a/b:tag",
        "registry:5000/a",
        "[::1]:5000/a",
        "Registry/a",
        "a__b/c-d/e---f.g_h",
        f"python@{DIGEST}",
        f"host.example:5000/a:tag@{DIGEST}",
        "a:" + "t" * 128,
        "a" * 255,
    ],
)
def test_references(image: str) -> None:
    """What container runtimes read is accepted."""
    assert list(check_image(image, "image")) == []


@pytest.mark.parametrize(
    ("image", "problem"),
    [
        pytest.param("Pytorch/pytorch::latest", '":latest" is no tag', id="two colons"),
        pytest.param("Python", '"Python" is not lower-case', id="upper case"),
        pytest.param("a:", '"" is no tag', id="no tag"),
        pytest.param("a:" + "t" * 129, "is no tag", id="long tag"),
        pytest.param("a:tag with blanks", '"tag with blanks" is no tag', id="blanks"),
        pytest.param("a//b", '"" is not lower-case', id="two slashes"),
        pytest.param("a..b/c", '"a..b" is no host name', id="host"),
        pytest.param("host:port/c", '"host:port" is no host name', id="port"),
        pytest.param("https://host/a", '"https:" is no host name', id="URL"),
        pytest.param("a@sha256:12", '"sha256:12" is no digest', id="short digest"),
        pytest.param(f"a@{DIGEST}@{DIGEST}", "is no digest", id="two digests"),
        pytest.param("a___b", '"a___b" is not lower-case', id="three underscores"),
        pytest.param("a" * 256, "its name has more than 255 characters", id="long name"),
        pytest.param("a/" * 100_000, "it has more than 1024 characters", id="very long"),
        pytest.param("a\n", '"a\\n" is not lower-case', id="line end"),
    ],
)
def test_what_is_no_reference(image: str, problem: str) -> None:
    """The error names the field and the part that is wrong, and stays short."""
    (error,) = check_image(image, "spec.trainer.image")
    assert error.field == "spec.trainer.image"
    assert problem in error.message
    assert len(error.message) < 3000
