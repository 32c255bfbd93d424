package packaging

import (
	"strings"
	"testing"
)

func TestDeploymentExample(t *testing.T) {
	example := readRepositoryFile(t, "docs/examples/deployment.yaml")
	decoded := decodeYAML[deployment](t, example)
	sidecar := sidecarOf(t, decoded)
	documented := documentedSettings(t)

	variables := sidecar.env(t)
	for name := range variables {
		documented.checkName(t, "deployment.yaml", name)
	}
	for _, name := range []string{"QUEUES", "FORWARD_URL"} {
		if variables[name].Value == "" {
			t.Errorf("deployment.yaml sets no %s", name)
		}
	}
	if len(sidecar.EnvFrom) != 1 || sidecar.EnvFrom[0]["secretRef"] == nil {
		t.Errorf("the URLs come from %v, want one Secret", sidecar.EnvFrom)
	}
	if port := ":" + itoa(sidecar.Ports[0].ContainerPort); port != documented["HEALTH_ADDR"] {
		t.Errorf("health port is %s, the default is %s", port, documented["HEALTH_ADDR"])
	}
	checkForwardPort(t, variables["FORWARD_URL"].Value, decoded.Spec.Template.Spec.Containers[0].Ports)
	grace := decoded.Spec.Template.Spec.TerminationGracePeriodSeconds
	if least := seconds(t, documented["SHUTDOWN_GRACE"]) + 15; grace < least {
		t.Errorf("grace period is %d, want at least %d", grace, least)
	}
	if lines := strings.Count(example, "\n"); lines > 40 {
		t.Errorf("the example has %d lines; it is meant to be read at a glance", lines)
	}
}

// The example and the chart are two ways to the same container.
func TestDeploymentExampleMatchesTheChart(t *testing.T) {
	example := decodeYAML[deployment](t, readRepositoryFile(t, "docs/examples/deployment.yaml"))
	rendered := renderDeployment(t)
	got := example.Spec.Template.Spec.InitContainers[0]
	want := rendered.Spec.Template.Spec.InitContainers[0]

	want.SecurityContext.RunAsGroup = got.SecurityContext.RunAsGroup
	for field, values := range map[string][2]any{
		"startupProbe.failureThreshold": {want.StartupProbe.FailureThreshold, got.StartupProbe.FailureThreshold},
		"startupProbe.periodSeconds":    {want.StartupProbe.PeriodSeconds, got.StartupProbe.PeriodSeconds},
		"limits.memory":                 {want.Resources.Limits["memory"], got.Resources.Limits["memory"]},
		"runAsUser":                     {want.SecurityContext.RunAsUser, got.SecurityContext.RunAsUser},
		"terminationGracePeriodSeconds": {
			rendered.Spec.Template.Spec.TerminationGracePeriodSeconds, example.Spec.Template.Spec.TerminationGracePeriodSeconds,
		},
	} {
		if values[0] != values[1] {
			t.Errorf("%s: the chart has %v, the example %v", field, values[0], values[1])
		}
	}
}
