package packaging

import (
	"regexp"
	"strings"
	"testing"
)

// settings maps each variable that docs/configuration.md describes to the default given there.
type settings map[string]string

// runtimeNames are variables of the Go runtime, not of rabbitonce.
var runtimeNames = map[string]bool{"GOMEMLIMIT": true}

var settingName = regexp.MustCompile("`([A-Z][A-Z0-9_]+)`")

// documentedSettings reads the tables of docs/configuration.md: rows "| `NAME` | default | ...".
func documentedSettings(t *testing.T) settings {
	t.Helper()
	documented := settings{}
	for line := range strings.Lines(readRepositoryFile(t, "docs/configuration.md")) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.TrimSpace(cells[0]) != "" {
			continue
		}
		for _, match := range settingName.FindAllStringSubmatch(cells[1], -1) {
			documented[match[1]] = strings.Trim(strings.TrimSpace(cells[2]), "`\"")
		}
	}
	if len(documented) == 0 {
		t.Fatal("docs/configuration.md has no row of the form | `NAME` | default |")
	}
	return documented
}

// checkName fails the test for a name that neither rabbitonce nor the Go runtime reads.
func (s settings) checkName(t *testing.T, where, name string) {
	t.Helper()
	_, plain := s[name]
	_, secretFile := s[strings.TrimSuffix(name, "_FILE")]
	if !plain && !secretFile && !runtimeNames[name] {
		t.Errorf("%s sets %s, which docs/configuration.md does not describe", where, name)
	}
}

// checkDefault fails the test when a file repeats another default than the documented one.
func (s settings) checkDefault(t *testing.T, where, name, value string) {
	t.Helper()
	want, found := s[name]
	if !found {
		t.Errorf("%s gives a default of %s, which docs/configuration.md does not describe", where, name)
		return
	}
	if value != want {
		t.Errorf("%s gives %s the default %q, docs/configuration.md gives %q", where, name, value, want)
	}
}
