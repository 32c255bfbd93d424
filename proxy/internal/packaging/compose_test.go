package packaging

import (
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// The parts of a compose file that ours uses; decoding refuses every other field.
type (
	composeFile struct {
		Name     string                    `yaml:"name"`
		Services map[string]composeService `yaml:"services"`
		Configs  map[string]composeSource  `yaml:"configs"`
		Secrets  map[string]composeSource  `yaml:"secrets"`
		Volumes  map[string]any            `yaml:"volumes"`
	}
	composeService struct {
		Image       string                       `yaml:"image"`
		Build       string                       `yaml:"build"`
		Command     []string                     `yaml:"command"`
		Init        bool                         `yaml:"init"`
		Hostname    string                       `yaml:"hostname"`
		NetworkMode string                       `yaml:"network_mode"`
		DependsOn   map[string]composeDependency `yaml:"depends_on"`
		Environment map[string]string            `yaml:"environment"`
		Ports       []string                     `yaml:"ports"`
		Volumes     []string                     `yaml:"volumes"`
		Configs     []composeMount               `yaml:"configs"`
		Secrets     []string                     `yaml:"secrets"`
		Healthcheck *composeHealthcheck          `yaml:"healthcheck"`
		ReadOnly    bool                         `yaml:"read_only"`
		CapDrop     []string                     `yaml:"cap_drop"`
		SecurityOpt []string                     `yaml:"security_opt"`
		StopGrace   string                       `yaml:"stop_grace_period"`
		Restart     string                       `yaml:"restart"`
	}
	composeDependency struct {
		Condition string `yaml:"condition"`
		Restart   bool   `yaml:"restart"`
	}
	composeMount struct {
		Source string `yaml:"source"`
		Target string `yaml:"target"`
	}
	composeHealthcheck struct {
		Test        []string `yaml:"test"`
		Interval    string   `yaml:"interval"`
		Timeout     string   `yaml:"timeout"`
		Retries     int      `yaml:"retries"`
		StartPeriod string   `yaml:"start_period"`
	}
	composeSource struct {
		File string `yaml:"file"`
	}
)

// definitions is the part of the broker's definitions that the test compares.
type definitions struct {
	Users []struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	} `json:"users"`
	Queues []queueDefinition `json:"queues"`
}

type queueDefinition struct {
	Name string `json:"name"`
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	return decodeYAML[composeFile](t, readRepositoryFile(t, "compose.yaml"))
}

func TestComposeSidecarLivesInTheServicesNetwork(t *testing.T) {
	compose := readCompose(t)
	sidecar := compose.Services["rabbitonce"]
	documented := documentedSettings(t)

	if sidecar.NetworkMode != "service:app" || sidecar.Build != "." || !sidecar.DependsOn["app"].Restart {
		t.Errorf("sidecar is not built here, or not bound to the service: %+v", sidecar)
	}
	if len(sidecar.Ports) != 0 {
		t.Errorf("sidecar publishes %v: a shared network refuses that", sidecar.Ports)
	}
	if !sidecar.ReadOnly || !slices.Equal(sidecar.CapDrop, []string{"ALL"}) {
		t.Error("sidecar's root is writable, or it keeps capabilities")
	}
	for name, value := range sidecar.Environment {
		documented.checkName(t, "compose.yaml", name)
		if strings.Contains(value, "@") {
			t.Errorf("%s holds a password in plain text", name)
		}
	}
	for _, name := range []string{"RABBITMQ_URL_FILE", "REDIS_URL_FILE"} {
		secret, isSecret := strings.CutPrefix(sidecar.Environment[name], "/run/secrets/")
		if !isSecret || !slices.Contains(sidecar.Secrets, secret) {
			t.Errorf("%s is %q, want a secret of the sidecar", name, sidecar.Environment[name])
		}
	}
	grace, err := time.ParseDuration(sidecar.StopGrace)
	if err != nil {
		t.Fatal(err)
	}
	if least := seconds(t, documented["SHUTDOWN_GRACE"]); grace < time.Duration(least)*time.Second {
		t.Errorf("stop_grace_period is %s, SHUTDOWN_GRACE is %ds", grace, least)
	}
}

func TestComposePublishesOnlyOnLoopback(t *testing.T) {
	for name, service := range readCompose(t).Services {
		for _, port := range service.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("service %s publishes %s beyond loopback", name, port)
			}
		}
	}
}

func TestComposeChecksTheHealthOfWhatIsNotOurs(t *testing.T) {
	services := readCompose(t).Services
	for _, name := range []string{"rabbitmq", "redis", "app"} {
		if check := services[name].Healthcheck; check == nil || len(check.Test) < 2 {
			t.Errorf("service %s has no healthcheck", name)
		}
	}
	if services["rabbitonce"].Healthcheck != nil {
		t.Error("the sidecar replaces the image's own HEALTHCHECK")
	}
}

// Every name that a service refers to is declared, and every file is there.
func TestComposeReferencesResolve(t *testing.T) {
	compose := readCompose(t)
	for name, service := range compose.Services {
		for _, secret := range service.Secrets {
			checkSource(t, name, compose.Secrets, secret)
		}
		for _, config := range service.Configs {
			checkSource(t, name, compose.Configs, config.Source)
		}
		for _, volume := range service.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, declared := compose.Volumes[source]; declared {
				continue
			}
			if _, err := os.Stat(repositoryPath(source)); err != nil {
				t.Errorf("service %s mounts %s: %v", name, source, err)
			}
		}
	}
}

// The example's files agree: user, passwords and hosts in the URLs, and the queue.
func TestComposeExampleFilesAgree(t *testing.T) {
	compose := readCompose(t)
	var broker definitions
	if err := json.Unmarshal([]byte(readRepositoryFile(t, compose.Configs["definitions"].File)), &broker); err != nil {
		t.Fatalf("decode definitions: %v", err)
	}
	brokerURL := parseSecretURL(t, compose, "rabbitmq_url")
	password, _ := brokerURL.User.Password()
	if len(broker.Users) != 1 || brokerURL.User.Username() != broker.Users[0].Name || password != broker.Users[0].Password {
		t.Error("rabbitmq_url is not the user of definitions.json")
	}
	for queue := range strings.SplitSeq(compose.Services["rabbitonce"].Environment["QUEUES"], ",") {
		if !slices.Contains(broker.Queues, queueDefinition{Name: queue}) {
			t.Errorf("definitions.json declares no queue %q", queue)
		}
	}
	storeURL := parseSecretURL(t, compose, "redis_url")
	password, _ = storeURL.User.Password()
	store := strings.Split(readRepositoryFile(t, compose.Secrets["redis.conf"].File), "\n")
	for _, line := range []string{"appendonly yes", "maxmemory-policy noeviction", "requirepass " + password} {
		if !slices.Contains(store, line) {
			t.Errorf("redis.conf lacks the line %q", line)
		}
	}
	for _, host := range []string{brokerURL.Hostname(), storeURL.Hostname()} {
		if _, found := compose.Services[host]; !found {
			t.Errorf("no service has the host name %s", host)
		}
	}
}

func checkSource(t *testing.T, service string, sources map[string]composeSource, name string) {
	t.Helper()
	source, declared := sources[name]
	if !declared {
		t.Errorf("service %s uses %s, which is not declared", service, name)
		return
	}
	if _, err := os.Stat(repositoryPath(source.File)); err != nil {
		t.Errorf("service %s uses %s: %v", service, name, err)
	}
}

func parseSecretURL(t *testing.T, compose composeFile, secret string) *url.URL {
	t.Helper()
	parsed, err := url.Parse(strings.TrimSpace(readRepositoryFile(t, compose.Secrets[secret].File)))
	if err != nil {
		t.Fatalf("parse secret %s: %v", secret, err)
	}
	return parsed
}
