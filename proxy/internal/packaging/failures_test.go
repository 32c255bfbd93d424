package packaging

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFailuresPageNamesTests holds docs/failures.md to the tests: each row names one at least, or says why there is none, and what it names exists. A part of a test, after the slash, is looked for in the
// folder of the test.
func TestFailuresPageNamesTests(t *testing.T) {
	folders := testFolders(t)
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+)(?:/([^`]+))?`")
	rows := 0
	for line := range strings.Lines(readRepositoryFile(t, "docs/failures.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "what goes wrong" {
			continue
		}
		rows++
		if len(cells) != 3 {
			t.Fatalf("row with %d cells: %s", len(cells), line)
		}
		names := named.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 && !strings.HasPrefix(strings.TrimSpace(cells[2]), "none: ") {
			t.Errorf("no test named: %s", line)
		}
		for _, name := range names {
			source, there := folders[name[1]]
			switch {
			case !there:
				t.Errorf("there is no test %s", name[1])
			case name[2] != "" && !strings.Contains(source, `"`+name[2]+`"`):
				t.Errorf("%s has no part %q", name[1], name[2])
			}
		}
	}
	if rows < 30 {
		t.Errorf("%d rows found in docs/failures.md", rows)
	}
}

// testFolders maps the name of each test to the test files of its folder.
func testFolders(t *testing.T) map[string]string {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(t \*testing\.T\)`)
	sources := map[string]string{}
	err := filepath.WalkDir(repositoryPath("."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry != nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".." {
				return filepath.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sources[filepath.Dir(path)] += string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{}
	for _, source := range sources {
		for _, name := range declared.FindAllStringSubmatch(source, -1) {
			tests[name[1]] += source
		}
	}
	return tests
}
