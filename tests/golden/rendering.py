"""The examples, and what their TrainJobs become: the text that `trainer render` prints."""

from __future__ import annotations

from pathlib import Path

from trainer.cli.documents import DocumentError, place, read_documents
from trainer.cli.offline.render import render_documents
from trainer.kubernetes_yaml import join

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = Path(__file__).parent / "expected"


def examples() -> list[Path]:
    """All files with TrainJobs, relative to the folder of the examples; a sweep makes its own by what it has chosen."""
    files = (path for path in EXAMPLES.rglob("*.yaml") if "\nkind: TrainJob\n" in path.read_text(encoding="utf-8"))
    return sorted(path.relative_to(EXAMPLES) for path in files)


def expected(example: Path) -> Path:
    """Where the objects of an example are kept: `kep-2170/torch-ddp.yaml`, `jax-digits/trainjob.yaml`."""
    return EXPECTED / example


def render(example: Path) -> str:
    """The objects as YAML; for an example that is refused, a comment that says why."""
    documents = place(read_documents(str(EXAMPLES / example)), namespace=None, default="default")
    try:
        rendered = render_documents(documents)
    except DocumentError as error:
        return "".join(f"# {error.subject} is refused: {problem}\n" for problem in error.errors)
    return join(result.to_yaml() for result in rendered)
