{{/* The chart's name. */}}
{{- define "ardea.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* What the names of objects begin with; short enough for -zookeeper-headless and a pod's number. */}}
{{- define "ardea.fullname" -}}
{{- $name := include "ardea.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* (dict "root" $ "component" "zookeeper"): labels that never change, by which pods are selected. */}}
{{- define "ardea.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ardea.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* (dict "root" $ "component" "zookeeper"): labels that are the same in each version of the chart. */}}
{{- define "ardea.lastingLabels" -}}
{{ include "ardea.selectorLabels" . }}
app.kubernetes.io/part-of: ardea
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* (dict "root" $ "component" "zookeeper"): labels of an object. */}}
{{- define "ardea.labels" -}}
{{ include "ardea.lastingLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* (dict "root" $ "component" ... "name" ... "labels" {} "annotations" {}): name, namespace, labels, annotations. */}}
{{- define "ardea.metadata" -}}
name: {{ .name | quote }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "ardea.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* (dict "image" .Values.image "tag" default): registry/repository:tag or @digest. */}}
{{- define "ardea.image" -}}
{{- $name := .image.repository }}
{{- with .image.registry }}{{ $name = printf "%s/%s" . $name }}{{ end }}
{{- if .image.digest }}
{{- printf "%s@%s" $name .image.digest }}
{{- else }}
{{- printf "%s:%s" $name (.image.tag | default .tag) }}
{{- end }}
{{- end }}

{{/* A list of names of Secrets, as imagePullSecrets has it. */}}
{{- define "ardea.pullSecrets" -}}
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "ardea.masterServiceAccount" -}}
{{- .Values.serviceAccounts.master.name | default (printf "%s-master" (include "ardea.fullname" .)) }}
{{- end }}

{{- define "ardea.containerServiceAccount" -}}
{{- .Values.serviceAccounts.container.name | default (printf "%s-container" (include "ardea.fullname" .)) }}
{{- end }}

{{/* Where the state lies, as `--state` takes it. */}}
{{- define "ardea.state" -}}
{{- if .Values.zookeeper.enabled }}
{{- printf "zookeeper://%s-zookeeper.%s.svc:2181/ardea" (include "ardea.fullname" .) .Release.Namespace }}
{{- else }}
{{- $scheme := ternary "zookeeper+tls" "zookeeper" (.Values.externalZookeeper.tls | default false) }}
{{- printf "%s://%s%s" $scheme (join "," .Values.externalZookeeper.servers) .Values.externalZookeeper.root }}
{{- end }}
{{- end }}

{{/* Selects the pods of topologies, masters and containers alike. */}}
{{- define "ardea.topologyPods" -}}
matchLabels:
  app.kubernetes.io/part-of: ardea
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: [master, container]
{{- end }}

{{/* (dict "cidr" "::/0" "except" CIDRs "six" true): a peer; of the exceptions those of this family. */}}
{{- define "ardea.allBut" -}}
{{- $except := list }}
{{- range .except }}{{ if eq $.six (contains ":" .) }}{{ $except = append $except . }}{{ end }}{{ end -}}
- ipBlock:
    cidr: {{ .cidr | quote }}
    {{- with $except }}
    except:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}

{{/* What submits, looks, debugs, changes and kills.  Whoever may submit may read every Secret of the namespace. */}}
{{- define "ardea.submitterRules" -}}
- apiGroups: [""]
  resources: [configmaps, secrets]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [configmaps/finalizers]
  verbs: [update]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, update, patch, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/exec, pods/portforward]
  verbs: [get, create]
- apiGroups: [""]
  resources: [pods/ephemeralcontainers]
  verbs: [get, update, patch]
- apiGroups: [""]
  resources: [services, serviceaccounts, resourcequotas]
  verbs: [get, list]
- apiGroups: [""]
  resources: [events]
  verbs: [get, list, watch]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list]
{{- if (.Values.console).enabled }}
# To let the console into a topology.  Kubernetes refuses a Role with rights that its maker does not have.
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [create]
{{- end }}
{{- end }}

{{/* Whether the chart's ZooKeeper serves /metrics; values of an older release may say nothing of it. */}}
{{- define "ardea.zookeeperMetrics" -}}
{{- if and .Values.zookeeper.enabled (dig "metrics" "enabled" false .Values.zookeeper) }}yes{{ end }}
{{- end }}

{{/* (list question answer): a probe that asks ZooKeeper with bash alone. */}}
{{- define "ardea.zookeeperAsks" -}}
{{- list "bash" "-c" (printf "exec 3<>/dev/tcp/127.0.0.1/2181 && printf %s >&3 && grep -q %s <&3" (first .) (last .)) | toJson }}
{{- end }}
