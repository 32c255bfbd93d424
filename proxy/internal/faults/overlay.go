package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rabbitonce/proxy/internal/testkit"
)

// edit replaces a piece of a source file that is there once.
type edit struct {
	file     string // in the module, or absolute
	old, new string
}

// buildWith builds the program with edits, without touching the files: see "go help build", -overlay.
func buildWith(ctx context.Context, edits []edit) (*testkit.Binary, error) {
	root, err := testkit.ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rabbitonce-overlay-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	list := filepath.Join(dir, "overlay.json")
	if err := writeOverlay(list, root, edits); err != nil {
		return nil, err
	}
	return testkit.Build(ctx, true, "-overlay", list)
}

// writeOverlay writes the edited files beside the list that names them.
func writeOverlay(list, root string, edits []edit) error {
	texts := map[string]string{}
	for _, e := range edits {
		path := e.file
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		text, read := texts[path]
		if !read {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(content)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return fmt.Errorf("edit %s: it has %d times, not once:\n%s", e.file, n, e.old)
		}
		texts[path] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	var errs []error
	for path, text := range texts {
		replace[path] = filepath.Join(filepath.Dir(list), fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		errs = append(errs, os.WriteFile(replace[path], []byte(text), 0o600))
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	return errors.Join(append(errs, err, os.WriteFile(list, content, 0o600))...)
}
