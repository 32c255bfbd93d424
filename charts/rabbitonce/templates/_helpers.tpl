{{/* Name of the release's objects: the release, and the chart unless the release says it already. */}}
{{- define "rabbitonce.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that never change over the life of a release. */}}
{{- define "rabbitonce.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rabbitonce.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "rabbitonce.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/*
Seconds from the pod's deletion to SIGKILL. The service is stopped first and the sidecar only when
it is gone, so both need their time one after the other, and the kubelet some of its own.
*/}}
{{- define "rabbitonce.terminationGracePeriodSeconds" -}}
{{- $least := add (int .Values.rabbitonce.shutdownGraceSeconds) (int .Values.service.stopSeconds) 5 -}}
{{- $given := .Values.terminationGracePeriodSeconds -}}
{{- if kindIs "invalid" $given -}}
{{- $least -}}
{{- else if lt (int64 $given) $least -}}
{{- fail (printf "terminationGracePeriodSeconds is %d and must be at least %d: rabbitonce.shutdownGraceSeconds + service.stopSeconds + 5" (int64 $given) $least) -}}
{{- else -}}
{{- int64 $given -}}
{{- end -}}
{{- end -}}
