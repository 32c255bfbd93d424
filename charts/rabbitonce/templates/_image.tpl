{{/* An image reference from a dict of image values: the digest, else the tag, else defaultTag. */}}
{{- define "rabbitonce.image" -}}
{{- $tag := default .defaultTag .image.tag -}}
{{- if .image.digest -}}
{{- printf "%s@%s" .image.repository .image.digest -}}
{{- else -}}
{{- printf "%s:%s" .image.repository (required (printf "the image %s needs a tag or a digest" .image.repository) $tag) -}}
{{- end -}}
{{- end -}}
