package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// The users and vhosts of the broker of TestSessionFaults, beside guest and /.
const (
	rotatedUser = "rotated" // its password changes
	closedUser  = "closed"  // its connections are closed by an operator
	limitedUser = "limited" // may have one connection
	lateUser    = "late"    // may enter no vhost at first
)

// sessionPassword is everybody's but guest's.
const sessionPassword = `Kp #?%/@:<&>"'äß☃ 81`

func oddVhosts() []string {
	return []string{"team/a", "/team", "a b", "p%2Fq", "#?@:&=+;,", "ü/ß☃", "[a]", `back\slash "quoted"`}
}

// writeDefinitions writes what the broker loads at its start, to a file that its user can read.
func writeDefinitions(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	users := []object{{"name": "guest", "password": "guest", "tags": "administrator"}}
	var permissions, vhosts []object
	allow := func(user, vhost string) {
		permissions = append(permissions, object{"user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": ".*"})
	}
	for _, name := range []string{rotatedUser, closedUser, limitedUser, lateUser} {
		users = append(users, object{"name": name, "password": sessionPassword, "tags": ""})
		if name != lateUser {
			allow(name, "/")
		}
	}
	for _, name := range append(oddVhosts(), "/") {
		vhosts = append(vhosts, object{"name": name})
		allow("guest", name)
	}
	text, err := json.Marshal(object{"users": users, "vhosts": vhosts, "permissions": permissions})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "rabbitonce-definitions-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "definitions.json")
	for _, err := range []error{os.Chmod(dir, 0o755), os.WriteFile(path, text, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}
