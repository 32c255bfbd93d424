{{/*
A map as a container's env list, sorted by name. Values that are maps are references (valueFrom);
all others become strings, and whole numbers keep their digits (YAML reads them as floats).
*/}}
{{- define "rabbitonce.envList" -}}
{{- range $name := keys . | sortAlpha }}
{{- $value := get $ $name }}
- name: {{ $name }}
{{- if kindIs "map" $value }}
  valueFrom: {{- toYaml $value | nindent 4 }}
{{- else if kindIs "float64" $value }}
  value: {{ $value | int64 | toString | quote }}
{{- else }}
  value: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
The sidecar's env list from its dict of values. All sources meet in one map, so no name comes twice:
a server-side apply refuses a list that repeats one.
*/}}
{{- define "rabbitonce.env" -}}
{{- $env := dict
      "QUEUES" (join "," .queues)
      "FORWARD_URL" .forwardUrl
      "HEALTH_ADDR" (printf ":%d" (int .healthPort))
      "SHUTDOWN_GRACE" (printf "%ds" (int .shutdownGraceSeconds)) -}}
{{- $memory := dig "limits" "memory" "" .resources -}}
{{- if $memory -}}
{{- $_ := set $env "GOMEMLIMIT" (include "rabbitonce.gomemlimit" $memory) -}}
{{- end -}}
{{- range $name, $secret := .secrets -}}
{{- if $secret.name -}}
{{- $_ := set $env $name (dict "secretKeyRef" (dict "name" $secret.name "key" $secret.key)) -}}
{{- else if not (include "rabbitonce.secretSpared" (dict "name" $name "sidecar" $)) -}}
{{- fail (printf "rabbitonce.secrets.%s.name is empty: name an existing Secret, or bring the variable by rabbitonce.envFrom or by rabbitonce.env.%s_FILE" $name $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := .env -}}
{{- if hasKey $.secrets $name -}}
{{- fail (printf "%s is in both rabbitonce.env and rabbitonce.secrets" $name) -}}
{{- end -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- include "rabbitonce.envList" $env -}}
{{- end -}}

{{/* Not empty when a secret without a name may be left out: it comes by envFrom or a file, or nothing reads it. */}}
{{- define "rabbitonce.secretSpared" -}}
{{- if or .sidecar.envFrom (hasKey .sidecar.env (printf "%s_FILE" .name)) (and (eq .name "REDIS_URL") (eq (get .sidecar.env "DEDUP_STORE") "memory")) -}}
true
{{- end -}}
{{- end -}}

{{/* Nine tenths of a memory limit in Mi or Gi: the garbage collector works harder before the kernel kills. */}}
{{- define "rabbitonce.gomemlimit" -}}
{{- $mebibytes := regexFind "^[0-9]+" . | int64 -}}
{{- if hasSuffix "Gi" . -}}
{{- $mebibytes = mul $mebibytes 1024 -}}
{{- end -}}
{{- printf "%dMiB" (div (mul $mebibytes 9) 10) -}}
{{- end -}}
