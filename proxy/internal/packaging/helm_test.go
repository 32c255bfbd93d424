package packaging

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// kubeVersion is the cluster that templates are rendered for: the oldest that the chart admits.
const kubeVersion = "1.29.0"

// helmTemplate renders the chart with values laid over the required ones, later documents over
// earlier ones. The error carries what Helm wrote. Subtests that render have no comma in their
// names: it would end up in the files' paths, where Helm reads it as a list.
func helmTemplate(t *testing.T, values ...string) (string, error) {
	t.Helper()
	args := []string{"template", "orders", repositoryPath("charts/rabbitonce"), "--kube-version", kubeVersion}
	for number, document := range append([]string{requiredValues}, values...) {
		name := filepath.Join(t.TempDir(), fmt.Sprintf("values-%d.yaml", number))
		writeFile(t, name, document)
		args = append(args, "--values", name)
	}
	return runHelm(t, args...)
}

func runHelm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	noteChartFiles(t)
	command := exec.CommandContext(t.Context(), repositoryPath("charts/helm.sh"), args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("run helm: %w: %s", err, stderr.String())
	}
	return stdout.String(), nil
}

// renderDeployment renders the chart, which makes nothing but a Deployment.
func renderDeployment(t *testing.T, values ...string) deployment {
	t.Helper()
	rendered, err := helmTemplate(t, values...)
	if err != nil {
		t.Fatal(err)
	}
	return decodeYAML[deployment](t, rendered)
}

// noteChartFiles looks at each file of the charts. Only what the test itself looks at counts when
// go test decides whether an earlier result still holds; what Helm reads does not.
func noteChartFiles(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(repositoryPath("charts"), func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatalf("look at the charts: %v", err)
	}
}
