package contract

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"rabbitonce/proxy/internal/testkit"
)

// shared is what all tests use. TestMain fills it before the first test runs; nothing changes it afterwards.
var shared servers

type servers struct {
	binary *testkit.Binary
	broker *testkit.Broker
	redis  *testkit.Redis
	client *testkit.Client // an administrator's, on vhost /
	store  *redis.Client
}

func TestMain(m *testing.M) {
	// Nearly all of a test's time is waiting. A -parallel on the command line wins.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	err := shared.start(ctx)
	cancel()
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, shared.close()); err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func (s *servers) start(ctx context.Context) error {
	definitions, err := writeDefinitions()
	if err != nil {
		return err
	}
	defer os.Remove(definitions)
	built := make(chan error, 1)
	go func() {
		var err error
		s.binary, err = testkit.Build(ctx, raceDetector)
		built <- err
	}()
	s.broker, err = testkit.StartBroker(ctx, testkit.BrokerOptions{Config: []string{"load_definitions = " + definitions}})
	if err := errors.Join(err, <-built); err != nil {
		return err
	}
	s.redis, err = testkit.StartRedis(ctx, testkit.RedisOptions{Volatile: true, Args: []string{"--requirepass", redisPassword}})
	if err != nil {
		return err
	}
	s.store = redis.NewClient(&redis.Options{Addr: s.redis.Addr, Password: redisPassword, PoolSize: 4})
	s.client, err = testkit.Dial(s.broker.URL)
	return err
}

func (s *servers) close() error {
	var err error
	if s.client != nil {
		err = s.client.Close()
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	if s.redis != nil {
		err = errors.Join(err, s.redis.Close())
	}
	if s.broker != nil {
		err = errors.Join(err, s.broker.Close())
	}
	if s.binary != nil {
		err = errors.Join(err, s.binary.Remove())
	}
	return err
}

// The vhosts of the broker. slashVhost has to be written team%2Fa in a URL.
const slashVhost = "team/a"

// The broker's users. The sidecar is who replicas are unless a test says otherwise.
const (
	sidecarUser     = "sidecar"
	powerlessUser   = "powerless"        // may connect, and nothing else
	readerUser      = "reader"           // may consume, but neither declare nor publish
	strangerUser    = "stranger"         // may not enter any vhost
	beginnerUser    = "beginner"         // has no permissions yet
	certificateUser = "certificate-user" // has no password: logs in by certificate
	passwordPrefix  = "password-"        // password-hash, password-slash, ...: see oddPasswords
)

// writeDefinitions writes the broker's vhosts and users to a file that it loads when it starts.
func writeDefinitions() (path string, err error) {
	type object = map[string]any
	var users, permissions []object
	add := func(name, password, tags, configure, write, read string, vhosts ...string) {
		users = append(users, object{"name": name, "password": password, "tags": tags})
		for _, vhost := range vhosts {
			permissions = append(permissions, object{"user": name, "vhost": vhost, "configure": configure, "write": write, "read": read})
		}
	}
	const all, none = ".*", "^$"
	add("guest", "guest", "administrator", all, all, all, "/", slashVhost)
	add(sidecarUser, sidecarPassword, "", all, all, all, "/", slashVhost)
	add(powerlessUser, sidecarPassword, "", none, none, none, "/")
	add(readerUser, sidecarPassword, "", none, none, all, "/")
	add(strangerUser, sidecarPassword, "", all, all, all)
	add(beginnerUser, sidecarPassword, "", none, none, none)
	for name, a := range leastUsers() {
		add(name, sidecarPassword, "", a.configure, a.write, a.read, "/")
	}
	for name, a := range checkedUsers() {
		add(name, sidecarPassword, "", a.configure, a.write, a.read, "/")
	}
	add(certificateUser, "", "", all, all, all, "/")
	for name, password := range oddPasswords() {
		add(passwordPrefix+name, password, "", all, all, all, "/")
	}
	text, err := json.Marshal(object{"users": users, "vhosts": []object{{"name": "/"}, {"name": slashVhost}}, "permissions": permissions})
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp("", "rabbitonce-definitions-*.json")
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	// The broker runs as another user.
	return file.Name(), errors.Join(err, file.Chmod(0o644), file.Close())
}
