{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "penstock.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "penstock.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select the pods of a component: (list . "proxy") */}}
{{- define "penstock.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "penstock.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "penstock.labels" -}}
{{- $root := index . 0 -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: penstock
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "penstock.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "penstock.serviceAccountName" -}}
{{- default (include "penstock.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "penstock.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "penstock.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* What --store takes. */}}
{{- define "penstock.store" -}}
{{- $store := .Values.control.store -}}
{{- if eq $store.kind "embedded" -}}
embedded
{{- else if $store.endpoints -}}
etcd://{{ join "," $store.endpoints }}
{{- else if .Values.etcd.enabled -}}
etcd://{{ include "penstock.fullname" . }}-etcd:2379
{{- else -}}
{{- fail "control.store.kind is etcd: set etcd.enabled to true, or name yours in control.store.endpoints" -}}
{{- end -}}
{{- end -}}

{{/* Whether this chart runs etcd: only where the control plane uses it. */}}
{{- define "penstock.ownEtcd" -}}
{{- if and .Values.etcd.enabled (eq .Values.control.store.kind "etcd") (not .Values.control.store.endpoints) -}}
true
{{- end -}}
{{- end -}}

{{- define "penstock.controlAddress" -}}
http://{{ include "penstock.fullname" . }}-control:7070
{{- end -}}
