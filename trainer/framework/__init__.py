"""The Pipeline Framework (KEP-2170): all that a plugin needs is imported from here.

`pipeline` runs the phases, `plugin_api` has the extension points and the values that plugins get and give. The phases:
`startup` (which plugins there are), `building` (PreExecution and Build: runtime and TrainJob become RuntimeInfo and
objects), `deploying` (server-side apply of what is built) and `status` (PostExecution). `runtimes` says which runtime a
TrainJob builds on.
"""

from __future__ import annotations

from trainer.api.labels import ANCESTOR_LABEL
from trainer.framework.building.init_containers import add_init_container
from trainer.framework.building.overrides import container_overrides
from trainer.framework.building.pod_groups import PodGroups, gang_specs, scheduler_warnings
from trainer.framework.building.profile import MODEL_EXPORTER
from trainer.framework.building.resources import cpus_of, is_exclusive
from trainer.framework.building.template import pod_spec_of, split_command
from trainer.framework.building.trainer_step import (
    PROCESSES,
    check_one_process_per_node,
    check_processes,
    check_reserved_env,
    nodes_field,
    stated_ancestor,
    stated_processes,
    trainer_env,
)
from trainer.framework.deploying.child import APPLIED_HASH
from trainer.framework.deploying.comparison import differences
from trainer.framework.pipeline import Pipeline
from trainer.framework.plugin_api.component import (
    ADOPTED,
    Component,
    Loss,
    Replacement,
    Revision,
    revise_while_suspended,
    runs_pods,
    unique_name,
)
from trainer.framework.plugin_api.errors import CLUSTER_LACKS, AdmissionWarning, BuildError, Finding, Review
from trainer.framework.plugin_api.extension_points import (
    ComponentBuilder,
    CustomValidation,
    DryRun,
    EnforceMLPolicy,
    EnforcePodGroupPolicy,
    Plugin,
    PodNetwork,
    Suspension,
    TerminalCondition,
    TrainJobStatus,
    Watch,
    WatchExtension,
)
from trainer.framework.plugin_api.failure import FailedContainer, first_failure, last_crash
from trainer.framework.plugin_api.plugin_context import PluginContext, Reader
from trainer.framework.plugin_api.pod_secret import PodConfigMap, PodSecret
from trainer.framework.plugin_api.reports import Evidence, Outcome, PodProblem, StatusCondition, StatusReport
from trainer.framework.plugin_api.runtime_info import (
    LAUNCHER,
    NODE_RANK,
    RENDEZVOUS_PORT,
    Ancestor,
    Container,
    NodeRange,
    PodSet,
    RuntimeInfo,
    by_name,
    upsert,
)
from trainer.framework.plugin_api.testing import StaticReader
from trainer.framework.startup.discovery import PluginFactory
from trainer.framework.startup.registry import Registry
from trainer.kube.field_errors import FieldError, forbidden, invalid, required

__all__ = [
    "ADOPTED",
    "ANCESTOR_LABEL",
    "APPLIED_HASH",
    "CLUSTER_LACKS",
    "LAUNCHER",
    "MODEL_EXPORTER",
    "NODE_RANK",
    "PROCESSES",
    "RENDEZVOUS_PORT",
    "AdmissionWarning",
    "Ancestor",
    "BuildError",
    "Component",
    "ComponentBuilder",
    "Container",
    "CustomValidation",
    "DryRun",
    "EnforceMLPolicy",
    "EnforcePodGroupPolicy",
    "Evidence",
    "FailedContainer",
    "FieldError",
    "Finding",
    "Loss",
    "NodeRange",
    "Outcome",
    "Pipeline",
    "Plugin",
    "PluginContext",
    "PluginFactory",
    "PodConfigMap",
    "PodGroups",
    "PodNetwork",
    "PodProblem",
    "PodSecret",
    "PodSet",
    "Reader",
    "Registry",
    "Replacement",
    "Review",
    "Revision",
    "RuntimeInfo",
    "StaticReader",
    "StatusCondition",
    "StatusReport",
    "Suspension",
    "TerminalCondition",
    "TrainJobStatus",
    "Watch",
    "WatchExtension",
    "add_init_container",
    "by_name",
    "check_one_process_per_node",
    "check_processes",
    "check_reserved_env",
    "container_overrides",
    "cpus_of",
    "differences",
    "first_failure",
    "forbidden",
    "gang_specs",
    "invalid",
    "is_exclusive",
    "last_crash",
    "nodes_field",
    "pod_spec_of",
    "required",
    "revise_while_suspended",
    "runs_pods",
    "scheduler_warnings",
    "split_command",
    "stated_ancestor",
    "stated_processes",
    "trainer_env",
    "unique_name",
    "upsert",
]
