{{/* What a schema cannot say: fails with what is wrong and what to do. */}}
{{- define "ardea.validate" -}}
{{- if and (not .Values.zookeeper.enabled) (not .Values.externalZookeeper.servers) }}
{{- fail "zookeeper.enabled is false and externalZookeeper.servers is empty: topologies would have no state. Set one of them." }}
{{- end }}
{{- if and .Values.zookeeper.enabled .Values.externalZookeeper.servers }}
{{- fail "zookeeper.enabled is true and externalZookeeper.servers is set: only one can hold the state. Set zookeeper.enabled=false to use the external servers." }}
{{- end }}
{{- if and .Values.zookeeper.enabled (or .Values.externalZookeeper.tls .Values.externalZookeeper.secret) }}
{{- fail "zookeeper.enabled is true, and externalZookeeper.tls or externalZookeeper.secret is set: the chart's own servers speak neither TLS nor SASL. Set zookeeper.enabled=false to use external servers." }}
{{- end }}
{{- with .Values.console }}
{{- if and .enabled .ingress.enabled (not .ingress.host) }}
{{- fail "console.ingress.enabled is true and console.ingress.host is empty: the console refuses requests for a name that it does not know. Set the name by which people reach it." }}
{{- end }}
{{- if and .enabled (not $.Values.rbac.create) .serviceAccount.create }}
{{- fail "console.enabled is true, rbac.create is false and console.serviceAccount.create is true: the console's account would have no rights. Set console.serviceAccount.create=false and console.serviceAccount.name to an account that has them (docs/helm.md)." }}
{{- end }}
{{- end }}
{{- range (lookup "v1" "ConfigMap" .Release.Namespace "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- $other := get $labels "app.kubernetes.io/instance" }}
{{- if and (eq (get $labels "ardea.dev/role") "defaults") (ne $other $.Release.Name) }}
{{- fail (printf "the namespace %s has the release %s already: submitters could not tell whose defaults are meant. Upgrade that one, or install into another namespace." $.Release.Namespace $other) }}
{{- end }}
{{- end }}
{{- with .Values.networkPolicy }}
{{- if and .enabled .egress.enabled (not .egress.open) (not $.Values.zookeeper.enabled) (not .extraEgress) }}
{{- fail "networkPolicy.egress.open is false and networkPolicy.extraEgress is empty: topologies would not reach externalZookeeper.servers. Add a rule for their addresses to networkPolicy.extraEgress." }}
{{- end }}
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
