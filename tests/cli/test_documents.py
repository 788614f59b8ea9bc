"""YAML documents that users hand to `trainer run`."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from trainer.cli.documents import (
    Document,
    DocumentError,
    UnknownKindError,
    documents_in,
    place,
    read_documents,
    repetitions,
)
from trainer.cli.errors import BadInputError, ExitCode
from trainer.kube.objects import name_of, namespace_of

JOB = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata:
  name: demo
spec:
  runtimeRef:
    name: torch-distributed
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: script
data:
  train.py: print("hello")
  released: 2026-01-01
"""


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("", "there is no TrainJob in it", id="empty"),
        pytest.param(CONFIG_MAP, "there is no TrainJob in it", id="no TrainJob"),
        pytest.param("a: \x01", "not valid YAML", id="control character"),
        pytest.param("just text", "document 1: must be a Kubernetes object, got str", id="not an object"),
        pytest.param("apiVersion: v1\nkind: 3", "document 1: kind: Required value", id="kind is no string"),
        pytest.param(
            JOB.replace("v2alpha1", "v1"),
            "trainer.kubeflow.org/v1 of TrainJob is not supported: write trainer.kubeflow.org/v2alpha1 or "
            "trainer.kubeflow.org/v1alpha1, as the cluster serves",
            id="other version",
        ),
        pytest.param(
            f"{JOB}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x}}",
            "document 2 (Deployment x): trainer does not handle Deployment, only TrainJob,",
            id="kind that is not submitted",
        ),
        pytest.param(
            JOB.replace("name: demo", "labels: {}"), "document 1: metadata.name: Required value", id="no name"
        ),
        pytest.param(
            f"{JOB}---\n{CONFIG_MAP.replace('name: script', 'name: [x]')}",
            'document 2: metadata.name: Invalid value: ["x"]: must be a string',
            id="name of a ConfigMap",
        ),
        pytest.param(
            JOB.replace("name: demo", "name: demo\n  namespace: a.b"),
            'metadata.namespace: Invalid value: "a.b": must consist of lower-case letters, digits and -',
            id="namespace",
        ),
        pytest.param(
            JOB.replace("name: demo", f"generateName: {'a' * 254}"),
            "metadata.generateName: Too long: may not be more than 253 bytes",
            id="long generateName",
        ),
        pytest.param(
            JOB.replace("name: demo", "name: demo\n  labels: {my team: a}"),
            'metadata.labels: Invalid value: "my team": keys must be names',
            id="key of a label",
        ),
        pytest.param(
            JOB + "  trainer:\n    numNode: 2\n",
            r"(TrainJob demo): spec.trainer.numNode: Unknown field: did you mean numNodes?",
            id="unknown field",
        ),
        pytest.param(
            JOB + "  trainer:\n    numNodes: two\n  suspend: maybe\n",
            'spec.trainer.numNodes: Invalid value: "two": must be an integer; '
            'spec.suspend: Invalid value: "maybe": must be true or false',
            id="wrong types",
        ),
        pytest.param(JOB + "  suspend: true\n  suspend: false\n", "the key 'suspend' is defined twice", id="key twice"),
        pytest.param(f"{JOB}---\n{JOB}", "TrainJob demo is defined twice", id="object twice"),
        pytest.param("? [1, 2]\n: x\n", "line 1, column 3: not valid YAML: a key must be a string", id="key is a list"),
        pytest.param(
            JOB + "  podSpecOverrides: [{targetJobs: [{name: node}], volumes: [{name: [x]}]}]\n",
            'spec.podSpecOverrides[0].volumes[0].name: Invalid value: ["x"]: must be a string',
            id="name of a volume",
        ),
    ],
)
def test_bad_input_names_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    """Whatever is wrong with a file is reported with the place and the remedy, before anything is sent."""
    file = tmp_path / "job.yaml"
    file.write_text(text)

    with pytest.raises(BadInputError) as caught:
        read_documents(str(file))

    assert str(caught.value).startswith(str(file))
    assert complaint in str(caught.value)
    assert caught.value.exit_code == ExitCode.BAD_INPUT


def test_unreadable_files(tmp_path: Path) -> None:
    """A missing file, a directory and binary data are reported as such."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    with pytest.raises(BadInputError, match=r"cannot read .*missing: No such file"):
        read_documents(str(tmp_path / "missing"))
    with pytest.raises(BadInputError, match="is a directory"):
        read_documents(str(tmp_path))
    with pytest.raises(BadInputError, match="is not UTF-8 text"):
        read_documents(str(tmp_path / "binary"))


def test_documents_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input may hold several documents, empty ones among them; values stay what they are in YAML."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"---\n{CONFIG_MAP}---\n---\n{JOB}"))

    config_map, job = read_documents("-")

    assert (config_map.is_train_job, job.is_train_job) == (False, True)
    assert config_map.obj["data"] == {"train.py": 'print("hello")', "released": "2026-01-01"}
    assert job.subject == "TrainJob demo"
    assert job.obj["spec"] == {"runtimeRef": {"name": "torch-distributed"}}


@pytest.mark.parametrize(
    ("own", "asked", "result"),
    [
        pytest.param(None, None, "from-context", id="default"),
        pytest.param("mine", None, "mine", id="its own"),
        pytest.param("mine", "mine", "mine", id="both agree"),
    ],
)
def test_place(tmp_path: Path, own: str | None, asked: str | None, result: str) -> None:
    """An object goes to its own namespace, else to the one asked for, else to that of the context."""
    (tmp_path / "job.yaml").write_text(JOB.replace("name: demo", f"name: demo\n  namespace: {own}") if own else JOB)

    (job,) = place(read_documents(str(tmp_path / "job.yaml")), namespace=asked, default="from-context")

    assert (namespace_of(job.obj), name_of(job.obj)) == (result, "demo")


def test_lists(tmp_path: Path) -> None:
    """What `kubectl get -o yaml` prints is read item by item; each says where it is."""
    items = "".join(f"- {text.rstrip().replace(chr(10), chr(10) + '  ')}\n" for text in (JOB, "kind: TrainJob"))
    file = tmp_path / "list.yaml"
    file.write_text(f"apiVersion: v1\nkind: List\nitems:\n{items}")

    good, bad = documents_in(str(file))

    assert isinstance(good, Document)
    assert (good.subject, good.place) == ("TrainJob demo", f"{file}, document 1, items[0]")
    assert str(bad) == f"{file}, document 1, items[1]: apiVersion: Required value"


def test_place_refuses_contradiction(tmp_path: Path) -> None:
    """An object with another namespace than the one asked for is refused, as kubectl does."""
    (tmp_path / "job.yaml").write_text(JOB.replace("name: demo", "name: demo\n  namespace: mine"))

    with pytest.raises(BadInputError, match=r"metadata.namespace is mine, but --namespace is yours"):
        place(read_documents(str(tmp_path / "job.yaml")), namespace="yours", default="default")


def test_cluster_scoped_objects_have_no_namespace(tmp_path: Path) -> None:
    """A ClusterTrainingRuntime is not placed in a namespace."""
    runtime = """\
apiVersion: trainer.kubeflow.org/v2alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec: {template: {spec: {}}}
"""
    (tmp_path / "job.yaml").write_text(f"{runtime}---\n{JOB}")

    placed, _ = place(read_documents(str(tmp_path / "job.yaml")), namespace="team", default="default")

    assert not namespace_of(placed.obj)


def test_the_good_and_the_bad(tmp_path: Path) -> None:
    """All documents of a file can be had, with the place of each, and why it cannot be used."""
    file = tmp_path / "job.yaml"
    file.write_text(f"{JOB}---\n---\nkind: TrainJob\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: x}}\n--- [")

    job, nameless, unknown, broken = documents_in(str(file))

    assert isinstance(job, Document)
    assert job.place == f"{file}, document 1"
    assert isinstance(nameless, DocumentError)
    assert (nameless.place, nameless.subject) == (f"{file}, document 3", "")
    assert [str(error) for error in nameless.errors] == ["apiVersion: Required value"]
    assert isinstance(unknown, UnknownKindError)
    assert unknown.subject == "Service x"
    assert isinstance(broken, DocumentError)
    assert broken.place == f"{file}, line 15, column 6"


def test_repetitions(tmp_path: Path) -> None:
    """The same object in two files is defined twice; one that gets its name from the server never is."""
    (tmp_path / "a.yaml").write_text(JOB)
    (tmp_path / "b.yaml").write_text(f"{JOB}---\n{JOB.replace('name: demo', 'generateName: demo-', 1)}")
    documents = [document for name in "ab" for document in read_documents(str(tmp_path / f"{name}.yaml"))] * 2

    places = {error.place for error in repetitions(documents)}

    assert places == {f"{tmp_path}/a.yaml, document 1", f"{tmp_path}/b.yaml, document 1"}
