{{/* What a schema cannot say: fails with what is wrong and what to do. */}}
{{- define "ardea.validate" -}}
{{- if and (not .Values.zookeeper.enabled) (not .Values.externalZookeeper.servers) }}
{{- fail "zookeeper.enabled is false and externalZookeeper.servers is empty: topologies would have no state. Set one of them." }}
{{- end }}
{{- if and .Values.zookeeper.enabled .Values.externalZookeeper.servers }}
{{- fail "zookeeper.enabled is true and externalZookeeper.servers is set: only one can hold the state. Set zookeeper.enabled=false to use the external servers." }}
{{- end }}
{{- if .Values.zookeeper.enabled }}
{{- $name := printf "%s-zookeeper" (include "ardea.fullname" .) }}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace $name }}
{{- if ne (int .spec.replicas) (int $.Values.zookeeper.servers) }}
{{- fail (printf "zookeeper.servers is %d and %s runs %d: an upgrade cannot change it, two new servers would outvote the one that holds the state. Kill the topologies, uninstall, and install again with %d." (int $.Values.zookeeper.servers) $name (int .spec.replicas) (int $.Values.zookeeper.servers)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
