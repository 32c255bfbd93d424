package proxy

import (
	"context"
	"errors"
	"time"
)

const forChecking purpose = "check"

// checkBroker looks at each host, at publishing, and at the queues.
func checkBroker(ctx context.Context, cfg *Config) []finding {
	if len(cfg.BrokerConfig.Validate()) > 0 {
		return []finding{about("broker").info("not looked at: the configuration is wrong")}
	}
	b := newBroker(cfg)
	checks := b.hostChecks(ctx, cfg)
	checks = append(checks, func() []finding { return checkQueues(ctx, cfg, b) })
	all := inParallel(checks...)
	return append(all, permissionsNeeded(cfg, all)...)
}

// hostChecks has one check for each host.
func (b *broker) hostChecks(ctx context.Context, cfg *Config) []func() []finding {
	endpoints, _ := parseBrokerURL(cfg.RabbitMQURL.Reveal()) // it was validated
	var checks []func() []finding
	for _, e := range endpoints {
		checks = append(checks, func() []finding { return []finding{b.checkHost(ctx, cfg, e)} })
	}
	return checks
}

// checkHost dials one host: TCP, TLS, login, vhost.
func (b *broker) checkHost(ctx context.Context, cfg *Config, e endpoint) finding {
	subject := about("broker " + e.address())
	conn, err := b.dialHost(ctx, &cfg.BrokerConfig, e, forChecking, reachTimeoutOfSeveral)
	if err != nil {
		return subject.failed(err)
	}
	defer hangUp(conn)
	transport := "without TLS"
	if e.tls {
		transport = "by TLS"
	}
	return subject.ok("%s, reached %s, logged in%s, vhost %s", brokerVersion(conn), transport, loginName(cfg, e), e.vhost)
}

func loginName(cfg *Config, e endpoint) string {
	who, err := cfg.login(e)
	switch {
	case err != nil:
		return ""
	case who.external:
		return " by certificate"
	}
	return " as " + who.username
}

func hangUp(conn *connection) { _ = conn.CloseDeadline(time.Now().Add(closeTimeout)) }

// checkQueues looks at publishing and at each queue, over two connections: one that published may be blocked.
func checkQueues(ctx context.Context, cfg *Config, b *broker) []finding {
	conn, err := b.dial(ctx, forChecking)
	if err != nil {
		return []finding{about("queues").info("not looked at: no host of RABBITMQ_URL could be used")}
	}
	defer hangUp(conn)
	stop := context.AfterFunc(ctx, func() { hangUp(conn) }) // ends a question that the broker does not answer
	defer stop()
	checks := []func() []finding{func() []finding { return []finding{b.checkPublishing(ctx)} }}
	for _, q := range cfg.Queues {
		checks = append(checks, func() []finding { return (&queueCheck{cfg: cfg, queue: q, conn: conn}).run() })
	}
	all := inParallel(checks...)
	if ctx.Err() != nil {
		all = append(all, about("queues").failed(context.Cause(ctx)))
	}
	return append(all, about("policies").info("no client sees what a policy adds to a queue (delivery limit, dead-letter exchange, length limit): "+
		"rabbitmqctl list_queues -p %s name policy effective_policy_definition", shellQuoted(cfg.vhost())))
}

// checkPublishing tries what dead letters and waiting messages need.
func (b *broker) checkPublishing(ctx context.Context) finding {
	const subject = about("publishing")
	conn, err := b.dial(ctx, forChecking)
	if err != nil {
		return subject.failed(err)
	}
	defer hangUp(conn)
	stop := context.AfterFunc(ctx, func() { hangUp(conn) })
	defer stop()
	switch err := tryPublishing(ctx, conn); {
	case errors.Is(err, errPublishersBlocked):
		return subject.fail(err.Error(), "free memory or disk on the broker; until then no dead letter and no waiting message leaves")
	case err != nil:
		return subject.failed(err)
	}
	return subject.ok("allowed (a message that no queue takes came back)")
}

// permissionsNeeded is the line that grants all that is needed, once, when something lacked.
func permissionsNeeded(cfg *Config, all []finding) []finding {
	for _, f := range all {
		if f.refused != "" {
			return []finding{about("permissions").info("all that this process needs: %s", neededGrants(cfg).command(cfg.vhost(), f.refused))}
		}
	}
	return nil
}
