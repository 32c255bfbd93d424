package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAServerTellsItsVersion(t *testing.T) {
	t.Setenv(queuesVariable, "classic")
	ctx := within(t, 3*time.Minute)
	broker, err := StartBroker(ctx, BrokerOptions{})
	must(t, err)
	closing(t, broker)
	store, err := StartRedis(ctx, RedisOptions{Volatile: true})
	must(t, err)
	closing(t, store)
	got, err := Describe(broker, store)
	must(t, err)
	for i, part := range strings.Split(got, ", ") {
		product := [][]string{{"RabbitMQ "}, {"classic queues"}, {"Redis ", "Valkey "}}[i]
		if !strings.HasPrefix(part, product[0]) && !strings.HasPrefix(part, product[len(product)-1]) {
			t.Errorf("%q is no %q", part, product)
		}
	}
	client := openClient(t, broker.URL)
	must(t, client.DeclareSource("orders", nil))
	must(t, client.DeclareClassic("orders", nil)) // would be refused for a queue of another type

	closed, err := StartRedis(ctx, RedisOptions{Volatile: true, Args: []string{"--requirepass", "secret"}})
	must(t, err)
	closing(t, closed)
	if version, err := closed.Version(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("a server that wants a password: %q, %v", version, err)
	}
}

func TestEnvironmentOfATestRun(t *testing.T) {
	empty := t.TempDir()
	must(t, os.WriteFile(filepath.Join(empty, "enter"), nil, 0o755))
	start := func() error {
		broker, err := StartBroker(t.Context(), BrokerOptions{})
		if err == nil {
			_ = broker.Close()
		}
		return err
	}
	for name, c := range map[string]struct {
		variable, value, words string
		do                     func() error
	}{
		"queues of no known type": {queuesVariable, "stream", "quorum or classic", func() error { _, err := SourceType(); return err }},
		"root that is none":       {brokerRootVariable, t.TempDir(), ".ci/servers", start},
		"relative root":           {brokerRootVariable, "../somewhere", "absolute", start},
		"root without a broker":   {brokerRootVariable, empty, "rabbitmq-server is not in", start},
		"store of no known name": {storeProgramVariable, "no-such-server", "no-such-server", func() error {
			_, err := StartRedis(t.Context(), RedisOptions{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			err := c.do()
			if os.Geteuid() != 0 && strings.Contains(name, "without") {
				c.words = "as root"
			}
			if err == nil || !strings.Contains(err.Error(), c.words) {
				t.Errorf("err = %v, want one with %q", err, c.words)
			}
		})
	}
}

// TestUserOfARoot: the same name has another number in each system.
func TestUserOfARoot(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0:root:/root:/bin/sh\nrabbitmq:x:7:8::/:/bin/sh\n"), 0o644))
	u, err := root(dir).user("rabbitmq")
	if err != nil || u.Uid != "7" || u.Gid != "8" {
		t.Errorf("user %+v, %v", u, err)
	}
	if u, err := root(dir).user("rabbit"); err == nil {
		t.Errorf("user %+v, want none", u)
	}
}

// TestServersOfARootMountNothingOutside says more where the run's servers come from a root, as in make matrix.
func TestServersOfARootMountNothingOutside(t *testing.T) {
	where, err := newRoot("", brokerRootVariable)
	must(t, err)
	before, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	path, args := where.wrap("/bin/cat", "/proc/self/mounts")
	inside, err := exec.Command(path, args...).Output()
	must(t, err)
	after, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	if string(before) != string(after) {
		t.Errorf("mounts changed:\n%s\n%s", before, after)
	}
	if where != "" && string(inside) == string(after) {
		t.Error("a program in a root has no mounts of its own")
	}
}
