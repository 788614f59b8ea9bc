"""What `kubectl apply -k` gets from config/: complete, valid on every Kubernetes that we support, each object once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

import trainer
from tests.config.kustomized import CONFIG, INSTALLED, OVERLAYS, V1ALPHA1, kustomize, of_kind, rendered
from tests.config.schemas import VERSIONS, check
from trainer.api.crds import crds
from trainer.cli.manifests import TRANSFORMERS_IMAGE
from trainer.kube.objects import Object, annotations_of, labels_of, name_of
from trainer_sweeps.api.definitions import definition

CLUSTER_SCOPED = {
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrainingRuntime",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
}
VARIANTS = ("dashboard-impersonation", "history-postgresql")
"""What some people apply besides, or in place of another one."""


def test_overlays() -> None:
    """Every directory of config/ can be applied by itself."""
    directories = {str(file.parent.relative_to(CONFIG)) for file in CONFIG.rglob("*") if file.is_file()}
    assert directories == set(OVERLAYS)


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_renders(overlay: str) -> None:
    """It renders without warnings, uses every file that is there, and has no object twice."""
    objects = rendered(overlay)

    identities = [(obj["apiVersion"], obj["kind"], obj["metadata"].get("namespace"), name_of(obj)) for obj in objects]
    assert identities
    assert [identity for identity, count in Counter(identities).items() if count > 1] == []
    kustomization = (CONFIG / overlay / "kustomization.yaml").read_text()
    unused = [file.name for file in (CONFIG / overlay).iterdir() if f"- {file.name}\n" not in f"{kustomization}\n"]
    assert unused == ["kustomization.yaml"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "overlay", [*INSTALLED, *VARIANTS, "runtimes", V1ALPHA1, "v1alpha1/runtimes", "v1", "v1alpha1/v1"]
)
def test_schemas(overlay: str, version: str) -> None:
    """Every field exists in the schema of its kind, and has a value that fits."""
    for obj in rendered(overlay):
        check(obj, version)


@pytest.mark.parametrize("overlay", [*INSTALLED, *VARIANTS, V1ALPHA1])
def test_everything_has_our_label(overlay: str) -> None:
    """`kubectl get -l app.kubernetes.io/name=trainer` finds what was applied, and a cleanup likewise."""
    unlabelled = [
        name_of(obj) for obj in rendered(overlay) if labels_of(obj).get("app.kubernetes.io/name") != "trainer"
    ]
    assert unlabelled == []


def namespaces(objects: list[Object]) -> set[str]:
    """Where the objects are that are somewhere."""
    return {obj["metadata"]["namespace"] for obj in objects if obj["kind"] not in CLUSTER_SCOPED}


@pytest.mark.parametrize("overlay", [overlay for overlay in INSTALLED if overlay != "samples"])
def test_one_namespace(overlay: str) -> None:
    """Whatever has a namespace is in that of the manager, without --namespace."""
    assert namespaces(rendered(overlay)) <= {"trainer-system"}


def test_the_namespace_of_the_released_trainer() -> None:
    """For v1alpha1 it is that of Kubeflow Trainer (Go), with the Lease of the same name."""
    assert namespaces(rendered(V1ALPHA1)) == {"kubeflow-system"}
    webhooks = [webhook for obj in rendered(V1ALPHA1) if "webhooks" in obj for webhook in obj["webhooks"]]
    assert {webhook["clientConfig"]["service"]["namespace"] for webhook in webhooks} == {"kubeflow-system"}
    assert {version for webhook in webhooks for rule in webhook["rules"] for version in rule["apiVersions"]} == {
        "v1alpha1"
    }
    assert all("-v1alpha1-" in webhook["clientConfig"]["service"]["path"] for webhook in webhooks)


def overlaid(directory: Path, base: str, kustomization: str) -> list[Object]:
    """What a kustomization in a directory makes of one of ours."""
    relative = "/".join([".."] * (len(directory.resolve().parts) - 1)) + str(CONFIG)
    (directory / "kustomization.yaml").write_text(f"{kustomization}resources:\n- {relative}/{base}\n")
    return kustomize(directory)


def test_another_namespace(tmp_path: Path) -> None:
    """An overlay of somebody else moves all of it to a namespace of his, references included."""
    objects = overlaid(tmp_path, "default", "namespace: ml-platform\n")

    assert namespaces(objects) == {"ml-platform"}
    assert [name_of(obj) for obj in of_kind(objects, "Namespace")] == ["ml-platform"]
    subjects = [s for obj in of_kind(objects, "RoleBinding", "ClusterRoleBinding") for s in obj["subjects"]]
    assert {subject["namespace"] for subject in subjects} == {"ml-platform"}
    webhooks = [webhook for obj in objects if "webhooks" in obj for webhook in obj["webhooks"]]
    assert {webhook["clientConfig"]["service"]["namespace"] for webhook in webhooks} == {"ml-platform"}


def test_definitions() -> None:
    """The CustomResourceDefinitions are those of the code."""
    definitions = of_kind(rendered("default"), "CustomResourceDefinition")
    for each in definitions:
        del each["metadata"]["labels"]
    assert definitions == sorted([*crds(), definition()], key=name_of)


def test_the_base_needs_no_kinds_of_others() -> None:
    """config/default has only built-in kinds, so that it applies where nothing but JobSet is installed."""
    groups = {obj["apiVersion"].rpartition("/")[0] for obj in rendered("default")}
    assert {group for group in groups if "." in group and not group.endswith(".k8s.io")} == set()


def test_one_image() -> None:
    """The image of config/default is used everywhere; its tag is the version, since nodes cache a tag."""
    objects = of_kind(rendered("default"), "Deployment", "Job")
    images = {c["image"] for obj in objects for c in obj["spec"]["template"]["spec"]["containers"]}
    assert images == {f"trainer-operator:{trainer.__version__}"}


def test_image_of_initializers_in_the_installer(tmp_path: Path) -> None:
    """The patch of docs/install.md names it, and makes another Job."""
    documented = (
        (CONFIG.parent / "docs" / "install.md").read_text().partition("```yaml\npatches:")[2].partition("```")[0]
    )
    (job,) = of_kind(overlaid(tmp_path, "default", f"patches:{documented}"), "Job")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    image = "registry.example.com/trainer-initializer:0.2.0"
    assert container["env"] == [
        {"name": "TRAINER_INITIALIZER_IMAGE", "value": image},
        {"name": "TRAINER_TRANSFORMERS_IMAGE", "value": TRANSFORMERS_IMAGE},
    ]
    assert name_of(job) not in {name_of(obj) for obj in of_kind(rendered("default"), "Job")}


@pytest.mark.parametrize("base", ["runtimes", "v1alpha1/runtimes"])
def test_image_of_initializers_in_runtimes(base: str, tmp_path: Path) -> None:
    """Without the installer, the images of a kustomization reach the runtimes, with a digest."""
    digest = f"sha256:{'0' * 64}"
    images = f"images:\n- name: trainer-initializer\n  newName: r.example.com/i\n  digest: {digest}\n"
    text = yaml.safe_dump_all(overlaid(tmp_path, base, images))
    assert text.count(f"image: r.example.com/i@{digest}\n") >= 6
    assert "image: trainer-initializer" not in text


@pytest.mark.parametrize("overlay", ["runtimes", "v1alpha1/runtimes"])
def test_descriptions(overlay: str) -> None:
    """Each runtime says in one sentence what it is for, which the dashboard shows to whoever chooses one."""
    for runtime in of_kind(rendered(overlay), "ClusterTrainingRuntime"):
        text = annotations_of(runtime).get("kubernetes.io/description", "")
        assert text.endswith("."), name_of(runtime)
        assert 20 < len(text) < 100, name_of(runtime)
