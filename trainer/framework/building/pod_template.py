"""The pod templates of a runtime, checked before anything reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.api.pod_template import pod_template_errors
from trainer.framework.plugin_api.errors import BuildError

if TYPE_CHECKING:
    from trainer.kube.objects import Object


def check_pod_template(template: Object, path: str) -> None:
    """Refuse a pod template that cannot become pods.

    Raises:
        BuildError: it has an error for each wrong field; `path` is where the template is.
    """
    errors = pod_template_errors(template, path)
    if errors:
        raise BuildError(*errors)
