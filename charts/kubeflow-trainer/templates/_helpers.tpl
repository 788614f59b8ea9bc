{{/* An image. Parameters: image (registry, repository, tag, digest), version (the tag where there is neither). */}}
{{- define "kubeflow-trainer.image" -}}
{{- with .image.registry }}{{ . }}/{{ end }}{{ .image.repository }}
{{- if or .image.tag (not .image.digest) }}:{{ .image.tag | default .version }}{{ end }}
{{- with .image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/*
The configuration file of the manager. Parameters: base (YAML), values.

Values for the released chart shorten the kinds of groupKindConcurrency, and leave names of certManagement empty.
*/}}
{{- define "kubeflow-trainer.configuration" -}}
{{- $config := deepCopy .values.manager.config }}
{{- $base := fromYaml .base }}
{{- if .values.controllers.v1.enabled }}
{{- $_ := set $base "controllers" (dict "v1" (dict "enabled" true)) }}
{{- end }}
{{- with $config.certManagement }}
{{- $_ := set $config "certManagement" (omit . "webhookServiceName" "webhookSecretName") }}
{{- end }}
{{- with dig "controller" "groupKindConcurrency" dict $config }}
{{- $kinds := dict "trainJob" "TrainJob" "trainingRuntime" "TrainingRuntime" "clusterTrainingRuntime" "ClusterTrainingRuntime" }}
{{- $concurrency := dict }}
{{- range $name, $value := . }}
{{- $full := printf "%s.trainer.kubeflow.org" (get $kinds $name) }}
{{- $_ := set $concurrency (ternary $full $name (hasKey $kinds $name)) $value }}
{{- end }}
{{- $_ := set $config.controller "groupKindConcurrency" $concurrency }}
{{- end }}
{{- mustMergeOverwrite $base $config | toYaml }}
{{- end }}

{{/*
Fails where the cluster serves TrainJobs of the other version. Parameters: wanted, served (API versions by discovery).

The API server refuses CRDs without the version in which objects are stored, but in the middle of an upgrade; with
crds.enabled: false nobody would refuse it.
*/}}
{{- define "kubeflow-trainer.checkServedVersion" -}}
{{- $other := ternary "v2alpha1" "v1alpha1" (eq .wanted "v1alpha1") }}
{{- if .served.Has (printf "trainer.kubeflow.org/%s" $other) }}
{{- printf "apiVersion: TrainJobs of this cluster are stored as %s, which %s cannot take over: keep it (--set apiVersion=%s), or delete the CRDs, and all TrainJobs with them, before (docs/install.md, Beside Kubeflow Trainer (Go))" $other .wanted $other | fail }}
{{- end }}
{{- end }}
