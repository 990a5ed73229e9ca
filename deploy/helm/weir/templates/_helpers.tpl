{{- define "weir.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of all resources: call with (dict "root" . "component" "api"). */}}
{{- define "weir.labels" -}}
{{ include "weir.selector" . }}
app.kubernetes.io/part-of: weir
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "weir.selector" -}}
app.kubernetes.io/name: weir
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "weir.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end -}}

{{- define "weir.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "weir.name" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "weir.definitions" -}}
{{- if .Values.definitions.existingConfigMap -}}
{{- .Values.definitions.existingConfigMap -}}
{{- else if .Values.definitions.files -}}
{{- include "weir.name" . }}-definitions
{{- end -}}
{{- end -}}

{{/* weir.yaml. Settings that the chart makes itself are refused among the values. */}}
{{- define "weir.settings" -}}
{{- $api := .Values.settings.api | default dict -}}
{{- if hasKey .Values.settings "features" }}{{ fail "settings.features is the chart's own: give definitions.files or definitions.existingConfigMap" }}{{ end -}}
{{- if hasKey $api "listen" }}{{ fail "settings.api.listen is the chart's own: pods listen on 8080; api.service.port is the Service's" }}{{ end -}}
{{- if hasKey $api "hosts" }}{{ fail "settings.api.hosts is the chart's own: give api.hosts, to which the Service's names are added" }}{{ end -}}
{{- $own := dict "features" (list "/etc/weir/features") "api" (dict "listen" ":8080") -}}
{{- mergeOverwrite (deepCopy .Values.settings) $own | toYaml -}}
{{- end -}}

{{- define "weir.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty (dig "api" "tls" "cert" "" .Values.settings))) -}}
{{- end -}}

{{- define "weir.volumes" -}}
- name: settings
  configMap: {name: {{ include "weir.name" . }}-settings}
- name: secrets
  secret: {secretName: {{ .Values.secretName }}, optional: true}
{{- with include "weir.definitions" . }}
- name: definitions
  configMap: {name: {{ . }}}
{{- end }}
{{- range .Values.mounts }}
- name: {{ .name }}
  {{- if .secret }}
  secret: {secretName: {{ .secret }}}
  {{- else }}
  configMap: {name: {{ required (printf "mounts: %s has neither secret nor configMap" .name) .configMap }}}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Folders are mounted, never single files (subPath): only a folder follows its ConfigMap or its Secret. */}}
{{- define "weir.volumeMounts" -}}
- {name: settings, mountPath: /etc/weir-settings, readOnly: true}
- {name: secrets, mountPath: /run/secrets/weir, readOnly: true}
{{- if include "weir.definitions" . }}
- {name: definitions, mountPath: /etc/weir/features, readOnly: true}
{{- end }}
{{- range .Values.mounts }}
- {name: {{ .name }}, mountPath: {{ .mountPath }}, readOnly: true}
{{- end }}
{{- end -}}

{{/* What the pods of both roles have in common: call with (dict "root" . "role" "api" "of" .Values.api). */}}
{{- define "weir.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "weir.labels" (dict "root" $root "component" .role) | nindent 4 }}
    {{- with .of.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    # Changed settings replace the pods; running pods read changed definitions.
    weir/settings: {{ include "weir.settings" $root | sha256sum }}
    prometheus.io/scrape: {{ not $root.Values.serviceMonitor.enabled | quote }}
    prometheus.io/port: "8080"
    prometheus.io/scheme: {{ include "weir.scheme" $root | lower }}
    {{- with .of.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "weir.serviceAccount" $root }}
  automountServiceAccountToken: false
  enableServiceLinks: false # the variables of a Service named weir would begin with WEIR_
  terminationGracePeriodSeconds: {{ .of.terminationGracePeriodSeconds }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext: {{ toYaml $root.Values.podSecurityContext | nindent 4 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{ include "weir.selector" (dict "root" $root "component" .role) | nindent 10 }}
  {{- with .of.nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .of.affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: weir
      image: {{ include "weir.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [run, --roles, {{ .role }}]
      env:
        - {name: WEIR_CONFIG, value: /etc/weir-settings/weir.yaml}
        - {name: GOMEMLIMIT, value: {{ .of.goMemLimit }}}
        {{- with .env }}{{ . | nindent 8 }}{{ end }}
        {{- with .of.env }}{{ toYaml . | nindent 8 }}{{ end }}
      ports:
        - {name: http, containerPort: 8080}
      # Without Redis or Kafka the process is alive, waits, and is not ready.
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "weir.scheme" $root }}}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "weir.scheme" $root }}}
        periodSeconds: 5
        timeoutSeconds: 3
      {{- if eq .role "api" }}
      lifecycle:
        # Questions still arrive until all nodes know that the pod is terminating.
        preStop:
          sleep: {seconds: 5}
      {{- end }}
      resources: {{ toYaml .of.resources | nindent 8 }}
      securityContext: {{ toYaml $root.Values.securityContext | nindent 8 }}
      volumeMounts: {{ include "weir.volumeMounts" $root | nindent 8 }}
  volumes: {{ include "weir.volumes" $root | nindent 4 }}
{{- end -}}

{{/*
A container for the pods of a rule engine, under initContainers: an API that starts before the rule engine and ends
after it (a native sidecar). Its volumes are those of weir.volumes. Call with (dict "root" $weir "resources" …),
where $weir is the scope of this chart: see examples/rule-engine.
*/}}
{{- define "weir.sidecar" -}}
- name: weir
  image: {{ include "weir.image" .root }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  restartPolicy: Always
  args: [run, --roles, api]
  env:
    - {name: WEIR_CONFIG, value: /etc/weir-settings/weir.yaml}
    - {name: GOMEMLIMIT, value: {{ .root.Values.api.goMemLimit }}}
  ports:
    - {name: weir, containerPort: 8080}
  # Checks only that it answers: a rule engine must start without Redis, and decide without features.
  startupProbe:
    httpGet: {path: /healthz, port: weir, scheme: {{ include "weir.scheme" .root }}}
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet: {path: /healthz, port: weir, scheme: {{ include "weir.scheme" .root }}}
    periodSeconds: 10
    failureThreshold: 6
  resources: {{ toYaml .root.Values.api.resources | nindent 4 }}
  securityContext: {{ toYaml (mergeOverwrite (deepCopy .root.Values.podSecurityContext) .root.Values.securityContext) | nindent 4 }}
  volumeMounts: {{ include "weir.volumeMounts" .root | nindent 4 }}
{{- end -}}
