package packaging

import (
	"path"
	"strings"
	"testing"
)

// ignoreRules is a .dockerignore in the one form that ours has: everything is left out but the
// admitted names at the root, and files of some names are left out everywhere.
type ignoreRules struct {
	admitted []string
	leftOut  []string
}

func readIgnoreRules(t *testing.T) ignoreRules {
	t.Helper()
	return parseIgnoreRules(t, readRepositoryFile(t, ".dockerignore"))
}

func parseIgnoreRules(t *testing.T, content string) ignoreRules {
	t.Helper()
	var rules ignoreRules
	everything := false
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		admitted, isAdmitted := strings.CutPrefix(line, "!")
		leftOut, isLeftOut := strings.CutPrefix(line, "**/")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case line == "*":
			everything = true
		case isAdmitted && !strings.Contains(admitted, "/"):
			rules.admitted = append(rules.admitted, admitted)
		case isLeftOut && !strings.Contains(leftOut, "/"):
			rules.leftOut = append(rules.leftOut, leftOut)
		default:
			t.Fatalf(".dockerignore has a pattern that this test does not understand: %s", line)
		}
	}
	if !everything {
		t.Fatal(".dockerignore is no allow list: it lacks the pattern *")
	}
	return rules
}

// admit reports whether a path from the root, with slashes, is in the build context.
func (r ignoreRules) admit(name string, isDir bool) bool {
	first, _, _ := strings.Cut(name, "/")
	return matchAny(r.admitted, first) && (isDir || !matchAny(r.leftOut, path.Base(name)))
}

func matchAny(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if matched, err := path.Match(pattern, name); err == nil && matched {
			return true
		}
	}
	return false
}

func TestIgnoreRulesAdmit(t *testing.T) {
	rules := parseIgnoreRules(t, "# comment\n*\n!go.mod\n!*.go\n!proxy\n**/*_test.go\n")
	tests := []struct {
		name  string
		isDir bool
		want  bool
	}{
		{"go.mod", false, true},
		{"main.go", false, true},
		{"main_test.go", false, false},
		{"proxy", true, true},
		{"proxy/amqp.go", false, true},
		{"proxy/internal/amqp_test.go", false, false},
		{".git", true, false},
		{"docs/main.go", false, false},
	}
	for _, test := range tests {
		if got := rules.admit(test.name, test.isDir); got != test.want {
			t.Errorf("admit(%s) is %v, want %v", test.name, got, test.want)
		}
	}
}

func TestBuildContextHoldsNoSecretsAndNoHistory(t *testing.T) {
	rules := readIgnoreRules(t)
	for _, name := range []string{".git", ".cache", ".env", "docs", "compose.yaml", "charts"} {
		if rules.admit(name, true) {
			t.Errorf("build context holds %s", name)
		}
	}
}
