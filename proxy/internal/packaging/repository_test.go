package packaging

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// repositoryPath is the path of a file given by its path from the root of the repository.
func repositoryPath(name string) string {
	return filepath.Join("..", "..", "..", filepath.FromSlash(name))
}

func readRepositoryFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(repositoryPath(name))
	if err != nil {
		t.Fatalf("read repository file: %v", err)
	}
	return string(content)
}

// decodeYAML decodes exactly one document into a T. A field that T does not have, a repeated key
// and a second document are errors, so that a misspelt field is not passed over.
func decodeYAML[T any](t *testing.T, document string) T {
	t.Helper()
	var value T
	decoder := yaml.NewDecoder(strings.NewReader(document))
	decoder.KnownFields(true)
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("decode %T: %v\n%s", value, err, document)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("decode %T: want one document, then %v", value, err)
	}
	return value
}
