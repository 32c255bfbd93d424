{{/*
The sidecar as an entry of a pod's initContainers, from a dict:
  sidecar     the values under "rabbitonce"
  appVersion  the tag of its image when the values name none

restartPolicy: Always makes it a native sidecar: it starts before the service, runs beside it,
and is stopped after it.
*/}}
{{- define "rabbitonce.container" -}}
{{- $sidecar := .sidecar -}}
name: rabbitonce
image: {{ include "rabbitonce.image" (dict "image" $sidecar.image "defaultTag" .appVersion) | quote }}
imagePullPolicy: {{ $sidecar.image.pullPolicy }}
restartPolicy: Always
env: {{- include "rabbitonce.env" $sidecar | trim | nindent 2 }}
{{- with $sidecar.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - name: health
    containerPort: {{ int $sidecar.healthPort }}
startupProbe: {{- include "rabbitonce.probe" (dict "path" "/startupz" "timing" $sidecar.probes.startup) | nindent 2 }}
livenessProbe: {{- include "rabbitonce.probe" (dict "path" "/livez" "timing" $sidecar.probes.liveness) | nindent 2 }}
readinessProbe: {{- include "rabbitonce.probe" (dict "path" "/readyz" "timing" $sidecar.probes.readiness) | nindent 2 }}
resources: {{- toYaml $sidecar.resources | nindent 2 }}
securityContext: {{- toYaml $sidecar.securityContext | nindent 2 }}
{{- with $sidecar.volumeMounts }}
volumeMounts: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "rabbitonce.probe" -}}
httpGet:
  path: {{ .path }}
  port: health
{{- with .timing }}
{{ toYaml . }}
{{- end }}
{{- end -}}
