package packaging

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// requiredValues is the least that the chart needs.
const requiredValues = `
service:
  image: {repository: registry.example.com/orders, tag: "1.4.2"}
rabbitonce:
  queues: [orders, refunds]
  forwardUrl: "http://127.0.0.1:8080/{queue}"
  secrets:
    RABBITMQ_URL: {name: orders-messaging}
    REDIS_URL: {name: orders-messaging, key: redis}
`

func TestChartRendersANativeSidecarFromTheRequiredValues(t *testing.T) {
	rendered := renderDeployment(t)
	sidecar := sidecarOf(t, rendered)

	want := []envVar{
		{Name: "FORWARD_URL", Value: "http://127.0.0.1:8080/{queue}"},
		{Name: "GOMEMLIMIT", Value: "57MiB"},
		{Name: "HEALTH_ADDR", Value: ":8085"},
		{Name: "QUEUES", Value: "orders,refunds"},
		{Name: "RABBITMQ_URL", ValueFrom: &valueFrom{secretKey{Name: "orders-messaging", Key: "RABBITMQ_URL"}}},
		{Name: "REDIS_URL", ValueFrom: &valueFrom{secretKey{Name: "orders-messaging", Key: "redis"}}},
		{Name: "SHUTDOWN_GRACE", Value: "25s"},
	}
	if diff := cmp.Diff(want, sidecar.Env); diff != "" {
		t.Errorf("env of the sidecar (-want +got):\n%s", diff)
	}
	pod := rendered.Spec.Template.Spec
	if token := pod.AutomountServiceAccountToken; token == nil || *token {
		t.Error("the pod mounts a service account token")
	}
	if pod.TerminationGracePeriodSeconds != 40 {
		t.Errorf("grace period is %d, want 25 + 10 + 5", pod.TerminationGracePeriodSeconds)
	}
	if service := pod.Containers[0]; service.Image != "registry.example.com/orders:1.4.2" || service.RestartPolicy != "" {
		t.Errorf("service container is %+v", service)
	}
}

func TestChartValues(t *testing.T) {
	tests := []struct {
		name   string
		values string
		check  func(t *testing.T, d deployment, sidecar container)
	}{
		{
			name:   "env is sorted and all strings",
			values: `rabbitonce: {env: {RETRY_MAX_ATTEMPTS: 1000000, DEDUP_STORE: redis, LOG_FORMAT: "1e3", REDIS_CLUSTER: true}}`,
			check: func(t *testing.T, _ deployment, sidecar container) {
				sorted := slices.IsSortedFunc(sidecar.Env, func(a, b envVar) int { return strings.Compare(a.Name, b.Name) })
				if !sorted {
					t.Errorf("env is not sorted: %v", sidecar.Env)
				}
				wantEnv(t, sidecar, "RETRY_MAX_ATTEMPTS", "1000000")
				wantEnv(t, sidecar, "DEDUP_STORE", "redis")
				wantEnv(t, sidecar, "LOG_FORMAT", "1e3")
				wantEnv(t, sidecar, "REDIS_CLUSTER", "true")
			},
		},
		{
			name:   "the health port moves address and port together",
			values: `rabbitonce: {healthPort: 9000}`,
			check: func(t *testing.T, _ deployment, sidecar container) {
				wantEnv(t, sidecar, "HEALTH_ADDR", ":9000")
				if sidecar.Ports[0].ContainerPort != 9000 {
					t.Errorf("container port is %d, want 9000", sidecar.Ports[0].ContainerPort)
				}
			},
		},
		{
			name:   "the grace period follows both stops",
			values: `{rabbitonce: {shutdownGraceSeconds: 60}, service: {stopSeconds: 30}}`,
			check: func(t *testing.T, d deployment, sidecar container) {
				wantEnv(t, sidecar, "SHUTDOWN_GRACE", "60s")
				if got := d.Spec.Template.Spec.TerminationGracePeriodSeconds; got != 95 {
					t.Errorf("grace period is %d, want 60 + 30 + 5", got)
				}
			},
		},
		{
			name:   "a longer grace period is kept",
			values: `terminationGracePeriodSeconds: 300`,
			check: func(t *testing.T, d deployment, _ container) {
				if got := d.Spec.Template.Spec.TerminationGracePeriodSeconds; got != 300 {
					t.Errorf("grace period is %d, want 300", got)
				}
			},
		},
		{
			name:   "the memory store needs no Redis",
			values: `rabbitonce: {env: {DEDUP_STORE: memory}, secrets: {REDIS_URL: {name: ""}}}`,
			check:  wantNoEnv("REDIS_URL"),
		},
		{
			name:   "envFrom may bring the URLs",
			values: `rabbitonce: {envFrom: [{secretRef: {name: all}}], secrets: {RABBITMQ_URL: {name: ""}, REDIS_URL: {name: ""}}}`,
			check:  wantNoEnv("RABBITMQ_URL", "REDIS_URL"),
		},
		{
			name:   "files may bring the URLs",
			values: `rabbitonce: {env: {RABBITMQ_URL_FILE: /s/a, REDIS_URL_FILE: /s/b}, secrets: {RABBITMQ_URL: {name: ""}, REDIS_URL: {name: ""}}}`,
			check:  wantNoEnv("RABBITMQ_URL", "REDIS_URL"),
		},
		{
			name:   "further secrets are references too",
			values: `rabbitonce: {secrets: {RABBITMQ_PASSWORD: {name: broker, key: password}}}`,
			check: func(t *testing.T, _ deployment, sidecar container) {
				got := sidecar.env(t)["RABBITMQ_PASSWORD"]
				want := envVar{Name: "RABBITMQ_PASSWORD", ValueFrom: &valueFrom{secretKey{Name: "broker", Key: "password"}}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("RABBITMQ_PASSWORD (-want +got):\n%s", diff)
				}
			},
		},
		{
			name:   "the memory target follows the limit",
			values: `rabbitonce: {resources: {limits: {memory: 2Gi}}}`,
			check: func(t *testing.T, _ deployment, sidecar container) {
				wantEnv(t, sidecar, "GOMEMLIMIT", "1843MiB")
			},
		},
		{
			name:   "the memory target may be chosen",
			values: `rabbitonce: {env: {GOMEMLIMIT: 40MiB}}`,
			check: func(t *testing.T, _ deployment, sidecar container) {
				wantEnv(t, sidecar, "GOMEMLIMIT", "40MiB")
			},
		},
		{
			name:   "without a limit there is no memory target",
			values: `rabbitonce: {resources: {limits: {memory: null}}}`,
			check:  wantNoEnv("GOMEMLIMIT"),
		},
		{
			name:   "a digest wins over the tag",
			values: `rabbitonce: {image: {tag: "9", digest: "sha256:` + strings.Repeat("0f", 32) + `"}}`,
			check: func(t *testing.T, _ deployment, sidecar container) {
				if want := "rabbitonce@sha256:" + strings.Repeat("0f", 32); sidecar.Image != want {
					t.Errorf("image is %s, want %s", sidecar.Image, want)
				}
			},
		},
		{
			name:   "pod labels never replace the selector's",
			values: `podLabels: {team: shop, app.kubernetes.io/name: other}`,
			check: func(t *testing.T, d deployment, _ container) {
				if got := d.Spec.Template.Metadata.Labels["team"]; got != "shop" {
					t.Errorf("label team is %q, want shop", got)
				}
			},
		},
		{
			name: "the service container takes a pod's own fields",
			values: `{volumes: [{name: run, emptyDir: {}}], service: {command: [serve], args: [--all], ports: [{name: http, containerPort: 8080}],
env: {B: 2, A: x}, envFrom: [{configMapRef: {name: c}}], volumeMounts: [{name: run, mountPath: /run}], resources: {limits: {memory: 1Gi}},
readinessProbe: {httpGet: {path: /ready, port: http}}, lifecycle: {preStop: {sleep: {seconds: 1}}}, securityContext: {runAsNonRoot: true}}}`,
			check: func(t *testing.T, d deployment, _ container) {
				want := container{
					Name: "service", Image: "registry.example.com/orders:1.4.2", ImagePullPolicy: "IfNotPresent",
					Command: []string{"serve"}, Args: []string{"--all"},
					Ports:           []containerPort{{Name: "http", ContainerPort: 8080}},
					Env:             []envVar{{Name: "A", Value: "x"}, {Name: "B", Value: "2"}},
					EnvFrom:         []map[string]any{{"configMapRef": map[string]any{"name": "c"}}},
					VolumeMounts:    []map[string]any{{"name": "run", "mountPath": "/run"}},
					Resources:       resources{Limits: map[string]string{"memory": "1Gi"}},
					ReadinessProbe:  &probe{HTTPGet: httpGet{Path: "/ready", Port: "http"}},
					Lifecycle:       map[string]any{"preStop": map[string]any{"sleep": map[string]any{"seconds": 1}}},
					SecurityContext: securityContext{RunAsNonRoot: true},
				}
				if diff := cmp.Diff(want, d.Spec.Template.Spec.Containers[0]); diff != "" {
					t.Errorf("service container (-want +got):\n%s", diff)
				}
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rendered := renderDeployment(t, test.values)
			test.check(t, rendered, sidecarOf(t, rendered))
		})
	}
}

func TestChartRefuses(t *testing.T) {
	tests := []struct {
		name   string
		values string
		want   string
	}{
		{"an unknown value", `replicaCount: 3`, "replicaCount"},
		{"an unknown value of the sidecar", `rabbitonce: {forwardURL: "http://127.0.0.1/"}`, "forwardURL"},
		{"an unknown value of the service", `service: {port: 80}`, "port"},
		{"no queue", `rabbitonce: {queues: []}`, "queues"},
		{"no forward URL", `rabbitonce: {forwardUrl: ""}`, "forwardUrl"},
		{"a service image without a tag", `service: {image: {tag: ""}}`, "needs a tag"},
		{"a secret without a name", `rabbitonce: {secrets: {REDIS_URL: {name: ""}}}`, "rabbitonce.secrets.REDIS_URL.name is empty"},
		{"a setting with two places", `rabbitonce: {env: {HEALTH_ADDR: ":9000"}}`, "HEALTH_ADDR"},
		{"a prefixed setting with two places", `rabbitonce: {env: {RABBITONCE_QUEUES: a}}`, "RABBITONCE_QUEUES"},
		{"a URL in plain text", `rabbitonce: {env: {RABBITMQ_URL: "amqp://a:b@c"}}`, "RABBITMQ_URL"},
		{"a password in plain text", `rabbitonce: {env: {REDIS_PASSWORD: hunter2}}`, "REDIS_PASSWORD"},
		{"a setting that is also a secret", `rabbitonce: {env: {LOG_LEVEL: info}, secrets: {LOG_LEVEL: {name: a, key: b}}}`, "LOG_LEVEL is in both"},
		{"a fraction", `rabbitonce: {env: {FORWARD_CONCURRENCY: 1.5}}`, "FORWARD_CONCURRENCY"},
		{"a memory limit in bytes", `rabbitonce: {resources: {limits: {memory: "64000000"}}}`, "memory"},
		{"a grace period that is too short", `terminationGracePeriodSeconds: 39`, "must be at least 40"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rendered, err := helmTemplate(t, test.values)
			if err == nil {
				t.Fatalf("rendered:\n%s", rendered)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the refusal does not say %q: %v", test.want, err)
			}
		})
	}
}

func TestChartPassesHelmLint(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	writeFile(t, values, requiredValues)
	_, err := runHelm(t, "lint", "--strict", "--kube-version", kubeVersion, "--values", values, repositoryPath("charts/rabbitonce"))
	if err != nil {
		t.Error(err)
	}
}

func TestChartSetsOnlyDocumentedSettings(t *testing.T) {
	documented := documentedSettings(t)
	for name := range sidecarOf(t, renderDeployment(t)).env(t) {
		documented.checkName(t, "the chart", name)
	}
}

// values.yaml repeats defaults of the program: two as values, the others in a comment.
func TestChartDefaultsAreTheProgramsDefaults(t *testing.T) {
	documented := documentedSettings(t)
	variables := sidecarOf(t, renderDeployment(t)).env(t)
	for _, name := range []string{"HEALTH_ADDR", "SHUTDOWN_GRACE"} {
		documented.checkDefault(t, "the chart", name, variables[name].Value)
	}
	comment := regexp.MustCompile(`(?m)^  #  ([A-Z_]+): (.+)$`)
	lines := comment.FindAllStringSubmatch(readRepositoryFile(t, "charts/rabbitonce/values.yaml"), -1)
	if len(lines) < 5 {
		t.Fatalf("found %d defaults in the comment of rabbitonce.env", len(lines))
	}
	for _, line := range lines {
		documented.checkDefault(t, "values.yaml", line[1], line[2])
	}
}

func wantEnv(t *testing.T, c container, name, value string) {
	t.Helper()
	if diff := cmp.Diff(envVar{Name: name, Value: value}, c.env(t)[name]); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func wantNoEnv(names ...string) func(*testing.T, deployment, container) {
	return func(t *testing.T, _ deployment, sidecar container) {
		for _, name := range names {
			if variable, found := sidecar.env(t)[name]; found {
				t.Errorf("the sidecar has %+v", variable)
			}
		}
	}
}
