package proxy

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestImportsAreAFork holds main -> proxy -> {dedup, forward}, and one file for each of the libraries that could be
// exchanged.
func TestImportsAreAFork(t *testing.T) {
	forbidden := map[string][]string{
		"dedup":   {"rabbitonce/proxy", "rabbitonce/forward"},
		"forward": {"rabbitonce/proxy", "rabbitonce/dedup"},
	}
	users := map[string][]string{
		"github.com/rabbitmq/amqp091-go": nil, "github.com/redis/go-redis/v9": nil, "github.com/go-chi/chi/v5": nil,
	}
	for file, imports := range productImports(t) {
		for _, path := range imports {
			if slices.Contains(forbidden[filepath.Dir(file)], path) {
				t.Errorf("%s imports %s", file, path)
			}
			if files, watched := users[path]; watched {
				users[path] = append(files, file)
			}
		}
	}
	want := map[string][]string{
		"github.com/rabbitmq/amqp091-go": {"proxy/amqp.go"}, "github.com/redis/go-redis/v9": {"dedup/redis.go"}, "github.com/go-chi/chi/v5": {"proxy/health.go"},
	}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Errorf("files that import a library (-want +got):\n%s", diff)
	}
}

// productImports maps each non-test file of the product, the test kit left out, to what it imports.
func productImports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, dir := range []string{"proxy", "dedup", "forward"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == "internal" {
				return filepath.SkipDir
			}
			if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
			for _, i := range f.Imports {
				all[name] = append(all[name], strings.Trim(i.Path.Value, `"`))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 30 {
		t.Fatalf("found only %d files", len(all))
	}
	return all
}
