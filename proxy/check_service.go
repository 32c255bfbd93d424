package proxy

import (
	"context"

	"rabbitonce/forward"
)

// checkServices asks each queue's service whether it is ready, as is done before a queue is consumed. No message is
// sent: there is none that is harmless to every service.
func checkServices(ctx context.Context, cfg *Config) []finding {
	var checks []func() []finding
	for _, q := range cfg.Queues {
		checks = append(checks, func() []finding { return []finding{checkService(ctx, q)} })
	}
	return inParallel(checks...)
}

func checkService(ctx context.Context, q QueueConfig) finding {
	subject := about("service of " + q.Name)
	client, err := forward.New(q.Forward, q.Name)
	if err != nil {
		return subject.info("not looked at: the configuration is wrong")
	}
	defer client.Close()
	if err := client.Probe(ctx); err != nil {
		return subject.fail(err.Error(), "is it up, and are FORWARD_URL and FORWARD_HEALTH_PATH right?")
	}
	if q.Forward.HealthPath != "" {
		return subject.ok("%s answers under %s", client.Target(), q.Forward.HealthPath)
	}
	return subject.ok("%s takes connections (FORWARD_HEALTH_PATH would ask whether it is ready)", client.Target())
}
