package packaging

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The parts of a Deployment that our files use; decoding refuses every other field.
type (
	deployment struct {
		APIVersion string         `yaml:"apiVersion"`
		Kind       string         `yaml:"kind"`
		Metadata   objectMeta     `yaml:"metadata"`
		Spec       deploymentSpec `yaml:"spec"`
	}
	objectMeta struct {
		Name        string            `yaml:"name"`
		Namespace   string            `yaml:"namespace"`
		Labels      map[string]string `yaml:"labels"`
		Annotations map[string]string `yaml:"annotations"`
	}
	deploymentSpec struct {
		Replicas int           `yaml:"replicas"`
		Selector labelSelector `yaml:"selector"`
		Template podTemplate   `yaml:"template"`
	}
	labelSelector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	podTemplate struct {
		Metadata objectMeta `yaml:"metadata"`
		Spec     podSpec    `yaml:"spec"`
	}
	podSpec struct {
		ServiceAccountName            string           `yaml:"serviceAccountName"`
		AutomountServiceAccountToken  *bool            `yaml:"automountServiceAccountToken"`
		TerminationGracePeriodSeconds int              `yaml:"terminationGracePeriodSeconds"`
		ImagePullSecrets              []map[string]any `yaml:"imagePullSecrets"`
		InitContainers                []container      `yaml:"initContainers"`
		Containers                    []container      `yaml:"containers"`
		Volumes                       []map[string]any `yaml:"volumes"`
	}
	container struct {
		Name            string           `yaml:"name"`
		Image           string           `yaml:"image"`
		ImagePullPolicy string           `yaml:"imagePullPolicy"`
		RestartPolicy   string           `yaml:"restartPolicy"`
		Command         []string         `yaml:"command"`
		Args            []string         `yaml:"args"`
		Env             []envVar         `yaml:"env"`
		EnvFrom         []map[string]any `yaml:"envFrom"`
		Ports           []containerPort  `yaml:"ports"`
		StartupProbe    *probe           `yaml:"startupProbe"`
		LivenessProbe   *probe           `yaml:"livenessProbe"`
		ReadinessProbe  *probe           `yaml:"readinessProbe"`
		Lifecycle       map[string]any   `yaml:"lifecycle"`
		Resources       resources        `yaml:"resources"`
		SecurityContext securityContext  `yaml:"securityContext"`
		VolumeMounts    []map[string]any `yaml:"volumeMounts"`
	}
	envVar struct {
		Name      string     `yaml:"name"`
		Value     string     `yaml:"value"`
		ValueFrom *valueFrom `yaml:"valueFrom"`
	}
	valueFrom struct {
		SecretKeyRef secretKey `yaml:"secretKeyRef"`
	}
	secretKey struct {
		Name string `yaml:"name"`
		Key  string `yaml:"key"`
	}
	containerPort struct {
		Name          string `yaml:"name"`
		ContainerPort int    `yaml:"containerPort"`
	}
	probe struct {
		HTTPGet             httpGet `yaml:"httpGet"`
		InitialDelaySeconds int     `yaml:"initialDelaySeconds"`
		PeriodSeconds       int     `yaml:"periodSeconds"`
		TimeoutSeconds      int     `yaml:"timeoutSeconds"`
		SuccessThreshold    int     `yaml:"successThreshold"`
		FailureThreshold    int     `yaml:"failureThreshold"`
	}
	httpGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	}
	resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	}
	securityContext struct {
		RunAsNonRoot             bool           `yaml:"runAsNonRoot"`
		RunAsUser                int            `yaml:"runAsUser"`
		RunAsGroup               int            `yaml:"runAsGroup"`
		ReadOnlyRootFilesystem   bool           `yaml:"readOnlyRootFilesystem"`
		AllowPrivilegeEscalation *bool          `yaml:"allowPrivilegeEscalation"`
		Capabilities             capabilities   `yaml:"capabilities"`
		SeccompProfile           seccompProfile `yaml:"seccompProfile"`
	}
	capabilities struct {
		Drop []string `yaml:"drop"`
	}
	seccompProfile struct {
		Type string `yaml:"type"`
	}
)

// env returns the container's variables by name and fails the test when one is given twice.
func (c container) env(t *testing.T) map[string]envVar {
	t.Helper()
	variables := map[string]envVar{}
	for _, variable := range c.Env {
		if _, repeated := variables[variable.Name]; repeated {
			t.Errorf("container %s sets %s twice", c.Name, variable.Name)
		}
		variables[variable.Name] = variable
	}
	return variables
}

// sidecarOf returns the only init container of a Deployment, after the checks that hold wherever
// rabbitonce is a sidecar.
func sidecarOf(t *testing.T, d deployment) container {
	t.Helper()
	if d.APIVersion != "apps/v1" || d.Kind != "Deployment" {
		t.Fatalf("got a %s %s, want an apps/v1 Deployment", d.APIVersion, d.Kind)
	}
	for name, value := range d.Spec.Selector.MatchLabels {
		if got := d.Spec.Template.Metadata.Labels[name]; got != value {
			t.Errorf("pod label %s is %q, the selector wants %q", name, got, value)
		}
	}
	pod := d.Spec.Template.Spec
	if len(pod.InitContainers) != 1 || len(pod.Containers) != 1 {
		t.Fatalf("got %d init containers and %d containers, want one each", len(pod.InitContainers), len(pod.Containers))
	}
	sidecar := pod.InitContainers[0]
	if sidecar.RestartPolicy != "Always" {
		t.Errorf("restartPolicy is %q: without Always it is no native sidecar", sidecar.RestartPolicy)
	}
	checkProbes(t, sidecar)
	checkRestricted(t, sidecar.SecurityContext)
	return sidecar
}

func checkProbes(t *testing.T, sidecar container) {
	t.Helper()
	probes := map[string]*probe{
		"/startupz": sidecar.StartupProbe,
		"/livez":    sidecar.LivenessProbe,
		"/readyz":   sidecar.ReadinessProbe,
	}
	for path, probe := range probes {
		if probe == nil {
			t.Errorf("the probe of %s is missing", path)
			continue
		}
		if diff := cmp.Diff(httpGet{Path: path, Port: "health"}, probe.HTTPGet); diff != "" {
			t.Errorf("probe of %s (-want +got):\n%s", path, diff)
		}
	}
	if len(sidecar.Ports) != 1 || sidecar.Ports[0].Name != "health" {
		t.Errorf("ports are %v, want one named health", sidecar.Ports)
	}
}

// checkRestricted compares with what the restricted Pod Security level demands of a container,
// and with a read-only root.
func checkRestricted(t *testing.T, got securityContext) {
	t.Helper()
	escalation := false
	want := securityContext{
		RunAsNonRoot:             true,
		RunAsUser:                got.RunAsUser,
		RunAsGroup:               got.RunAsGroup,
		ReadOnlyRootFilesystem:   true,
		AllowPrivilegeEscalation: &escalation,
		Capabilities:             capabilities{Drop: []string{"ALL"}},
		SeccompProfile:           seccompProfile{Type: "RuntimeDefault"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	if got.RunAsUser == 0 {
		t.Error("runAsUser is root")
	}
}
