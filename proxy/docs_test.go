package proxy

import (
	"flag"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rabbitonce/dedup"
)

// The documentation is part of the product: these tests hold its tables to the code. Each compares whole sets, so
// that it fails for what is missing on either side.

// documentedVariable is a row of docs/configuration.md.
type documentedVariable struct {
	Fallback string // "" when there is none, whatever the page says instead
	PerQueue bool
}

func TestConfigurationPageListsEveryVariable(t *testing.T) {
	want := map[string]documentedVariable{}
	for _, v := range processVariables() {
		want[v.name] = documentedVariable{Fallback: v.fallback}
	}
	for _, v := range queueVariables() {
		want[v.name] = documentedVariable{Fallback: v.fallback, PerQueue: true}
	}
	got := map[string]documentedVariable{}
	for _, row := range pageRows(t, "docs/configuration.md", "") {
		name, isVariable := quoted(row[0])
		if !isVariable {
			continue
		}
		if len(row) != 4 || row[1] == "" || row[2] == "" || (row[3] != "yes" && row[3] != "no") {
			t.Errorf("row of %s: want name, default, meaning, and yes or no: %q", name, row)
			continue
		}
		if _, twice := got[name]; twice {
			t.Errorf("%s has two rows", name)
		}
		fallback, _ := quoted(row[1])
		got[name] = documentedVariable{Fallback: fallback, PerQueue: row[3] == "yes"}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/configuration.md and the structs differ (-structs +page):\n%s", diff)
	}
}

func TestConfigurationPageListsWhatIsNotThereYet(t *testing.T) {
	item := regexp.MustCompile("(?m)^- `([A-Z_]+)`: (?:leave it unset|only `([^`]+)`)")
	got := map[string]string{}
	for _, m := range item.FindAllStringSubmatch(pageSection(t, "docs/configuration.md", "## Not in this version"), -1) {
		got[m[1]] = m[2]
	}
	if diff := cmp.Diff(notYet, got); diff != "" {
		t.Errorf("docs/configuration.md and notYet differ (-code +page):\n%s", diff)
	}
}

// TestPagesListClosedSets holds the tables of values that are enums in the code.
func TestPagesListClosedSets(t *testing.T) {
	for _, c := range []struct {
		page, heading string
		want          []string
	}{
		{"docs/dead-letters.md", "## Reasons", texts(dedup.Reasons())},
		{"docs/dead-letters.md", "## Headers", letterHeaders()},
		{"docs/operations.md", "### How deliveries end", texts(fates())},
		{"docs/operations.md", "### How copies meet their message", texts(duplicates())},
		{"docs/operations.md", "### Why a queue is not consumed", texts(sessionEnds())},
	} {
		t.Run(c.heading, func(t *testing.T) {
			got := slices.Sorted(maps.Keys(quotedRows(t, c.page, c.heading)))
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.want)), got); diff != "" {
				t.Errorf("%s differs from the code (-code +page):\n%s", c.page, diff)
			}
		})
	}
}

// TestCommandsPageHasEveryCommand and option; a command with a page of its own has its options there.
func TestCommandsPageHasEveryCommand(t *testing.T) {
	for _, c := range Commands() {
		section := pageSection(t, "docs/commands.md", "## "+c.Name)
		if own, err := os.ReadFile("../docs/" + c.Name + ".md"); err == nil {
			section += string(own)
		}
		flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
		c.setup(flags)
		flags.VisitAll(func(f *flag.Flag) {
			if !strings.Contains(section, "`--"+f.Name) {
				t.Errorf("docs/commands.md does not tell of %s --%s", c.Name, f.Name)
			}
		})
	}
}

// letterHeaders are the names that a letter can carry, from one that carries all of them.
func letterHeaders() []string {
	m := &message{delivery: &delivery{Expiration: "60000", UserId: "guest"}}
	full := obituary{reason: dedup.ReasonRejected, deadID: "0123456789abcdef", status: 400, problem: "why", response: []byte("what")}
	q := &queue{cfg: QueueConfig{Name: "orders"}, publisher: newPublisher(&broker{})}
	sent, _ := q.compose(m, full)
	return append(slices.Collect(maps.Keys(sent.Headers)), headerPrefix+"left-out")
}

func TestOperationsPageListsEveryMetric(t *testing.T) {
	want := map[string][]string{}
	families, err := documentedProxy(t).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "rabbitonce_")
		if !ours {
			continue
		}
		labels := []string{}
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		slices.Sort(labels)
		want[name] = labels
	}
	got := map[string][]string{}
	for name, row := range quotedRows(t, "docs/operations.md", "## Metrics") {
		labels := []string{}
		for label := range strings.SplitSeq(row[1], ",") {
			if text, ok := quoted(strings.TrimSpace(label)); ok {
				labels = append(labels, text)
			}
		}
		slices.Sort(labels)
		got[name] = labels
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/operations.md and the registry differ (-registry +page):\n%s", diff)
	}
}

// documentedProxy is a Proxy that connects to nothing.
func documentedProxy(t *testing.T) *Proxy {
	t.Helper()
	cfg, err := Load([]string{
		"RABBITMQ_URL=amqp://localhost/", "QUEUES=orders", "DEDUP_STORE=memory", "FORWARD_URL=http://localhost/",
	}, "test")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOperationsPageQuotesLogLines: every message above debug has a row, and no row quotes a message that is not
// logged. A row may end in "..." where the message goes on.
func TestOperationsPageQuotesLogLines(t *testing.T) {
	source := productSource(t)
	rows := quotedRows(t, "docs/operations.md", "## Log lines")
	logged := regexp.MustCompile(`\.(?:Info|Warn|Error)\(\s*"([^"]+)"`).FindAllStringSubmatch(source, -1)
	if len(logged) == 0 {
		t.Fatal("no log line found in the source")
	}
	for _, m := range logged {
		quotes := func(row string) bool {
			beginning, open := strings.CutSuffix(row, "...")
			return m[1] == row || open && strings.HasPrefix(m[1], beginning)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rows)), quotes) {
			t.Errorf("docs/operations.md does not list the log line %q", m[1])
		}
	}
	for row := range rows {
		text := `"` + row + `"`
		if beginning, open := strings.CutSuffix(row, "..."); open {
			text = `"` + beginning
		}
		if !strings.Contains(source, text) {
			t.Errorf("docs/operations.md quotes %q, which nothing logs", row)
		}
	}
}

// productSource is main.go and this package without its tests.
func productSource(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	text := readPage(t, "main.go")
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			text += readPage(t, filepath.Join("proxy", file))
		}
	}
	return text
}

var pageLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere follows relative links, and the anchors of those that lead to a page.
func TestLinksLeadSomewhere(t *testing.T) {
	followed := 0
	for _, page := range pages(t) {
		for _, link := range pageLink.FindAllStringSubmatch(readPage(t, page), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(link[1], "://") {
				continue
			}
			followed++
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(filepath.Join("..", target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readPage(t, target)), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", page, link[1], target)
			}
		}
	}
	if followed == 0 {
		t.Error("no relative link was found")
	}
}

// TestMapNamesEveryPage: docs/README.md leads to each page under docs.
func TestMapNamesEveryPage(t *testing.T) {
	var linked []string
	for _, link := range pageLink.FindAllStringSubmatch(readPage(t, "docs/README.md"), -1) {
		linked = append(linked, filepath.Join("docs", link[1]))
	}
	for _, page := range pages(t) {
		if page != "README.md" && page != "docs/README.md" && !slices.Contains(linked, page) {
			t.Errorf("docs/README.md does not link to %s", page)
		}
	}
}

// pages are README.md and every page under docs, by their paths from the root.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"README.md"}
	err := filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			all = append(all, strings.TrimPrefix(path, "../"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// readPage reads a file by its path from the root.
func readPage(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pageSection is what stands between a heading and the next one of any level.
func pageSection(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(readPage(t, page), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	if end := regexp.MustCompile(`(?m)^#+ `).FindStringIndex(rest); end != nil {
		rest = rest[:end[0]]
	}
	return rest
}

// pageRows are the cells of the tables under a heading, of the whole page when it is "".
func pageRows(t *testing.T, page, heading string) [][]string {
	t.Helper()
	text := readPage(t, page)
	if heading != "" {
		text = pageSection(t, page, heading)
	}
	var rows [][]string
	for line := range strings.Lines(text) {
		inner, isRow := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !isRow {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(inner, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// quotedRows are the rows whose first cell is a quoted name, by that name.
func quotedRows(t *testing.T, page, heading string) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for _, row := range pageRows(t, page, heading) {
		if name, ok := quoted(row[0]); ok {
			rows[name] = row
		}
	}
	return rows
}

var wholeQuote = regexp.MustCompile("^`([^`]+)`$")

// quoted is the text of a cell that is nothing but code.
func quoted(cell string) (string, bool) {
	m := wholeQuote.FindStringSubmatch(cell)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// anchors are the names that a page's headings have in links: lower case, spaces as hyphens, punctuation dropped.
func anchors(page string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(page, -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1])))
	}
	return all
}

func texts[T interface{ String() string }](values []T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.String()
	}
	return all
}
