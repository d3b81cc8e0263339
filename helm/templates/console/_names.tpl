{{- define "ardea.console" -}}
{{- printf "%s-console" (include "ardea.fullname" .) }}
{{- end }}

{{- define "ardea.consoleServiceAccount" -}}
{{- .Values.console.serviceAccount.name | default (include "ardea.console" .) }}
{{- end }}

{{/* The Secret with the keys view and act. */}}
{{- define "ardea.consoleTokens" -}}
{{- .Values.console.existingSecret | default (include "ardea.console" .) }}
{{- end }}

{{/* A topology's name: what its root is called, as ardea.scheduler.kubernetes.names.root has it. */}}
{{- define "ardea.root" -}}
{{- $name := regexReplaceAll "[^a-z0-9]+" (lower .) "-" | trimAll "-" }}
{{- if and $name (le (len $name) 40) (regexMatch "^[\\x00-\\x7f]*$" .) }}
{{- $name }}
{{- else }}
{{- printf "%s-%s" (trunc 31 $name | trimSuffix "-") (sha256sum . | trunc 8) | trimPrefix "-" }}
{{- end }}
{{- end }}

{{/* The roots of the topologies that the console is let into, as JSON: those named, and those that there are now. */}}
{{- define "ardea.consoleRoots" -}}
{{- $roots := list }}
{{- range .Values.console.topologies }}{{ $roots = append $roots (include "ardea.root" .) }}{{ end }}
{{- range (lookup "v1" "ConfigMap" .Release.Namespace "").items }}
{{- if eq (get (.metadata.labels | default dict) "ardea.dev/role") "topology" }}{{ $roots = append $roots .metadata.name }}{{ end }}
{{- end }}
{{- $roots | uniq | sortAlpha | toJson }}
{{- end }}

{{/* What submitters let into their topologies, as JSON. */}}
{{- define "ardea.consoleForSubmitters" -}}
{{- if and (.Values.console).enabled .Values.rbac.create }}
{{- dict "account" (include "ardea.consoleServiceAccount" .) "kills" (and .Values.console.act .Values.console.kill) | toJson }}
{{- end }}
{{- end }}

{{/* The names by which it may be reached, beside loopback, as JSON. */}}
{{- define "ardea.consoleHosts" -}}
{{- $service := include "ardea.console" . }}
{{- $hosts := list $service (printf "%s.%s" $service .Release.Namespace) (printf "%s.%s.svc" $service .Release.Namespace) }}
{{- $hosts = append $hosts (printf "%s.%s.svc.cluster.local" $service .Release.Namespace) }}
{{- if .Values.console.ingress.enabled }}{{ $hosts = append $hosts .Values.console.ingress.host }}{{ end }}
{{- concat $hosts .Values.console.allowedHosts | uniq | toJson }}
{{- end }}
