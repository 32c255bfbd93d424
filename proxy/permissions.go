package proxy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// access is a permission of RabbitMQ, which is a pattern of names for each user and vhost
// (https://www.rabbitmq.com/docs/access-control#authorisation).
type access string

const (
	accessConfigure access = "configure"
	accessWrite     access = "write"
	accessRead      access = "read"
	// accessOfWaitQueue is what declaring a queue with a dead-letter exchange takes beside writing to that exchange.
	accessOfWaitQueue access = "configure and read"
)

// accessToDeclare is what declaring a queue with these arguments takes on the queue itself.
func accessToDeclare(arguments table) access {
	if _, ok := arguments["x-dead-letter-exchange"]; ok {
		return accessOfWaitQueue
	}
	return accessConfigure
}

// defaultExchange is how permissions name the exchange without a name.
const defaultExchange = "amq.default"

// grants are the names that a user has to have each permission on, so that a process can do all that it may have to.
type grants struct {
	configure, write, read []string
}

// neededGrants lists what the process may do: consume its queues; publish to the default exchange; declare dead-letter
// and wait queues, which takes reading from a wait queue too, since it has a dead-letter exchange; and declare the
// source queues if RABBITMQ_DECLARE says so.
func neededGrants(cfg *Config) grants {
	g := grants{write: []string{defaultExchange}}
	for _, q := range cfg.Queues {
		g.read = append(g.read, q.Name)
		if cfg.RabbitMQDeclare {
			g.configure = append(g.configure, q.Name)
		}
		if q.DeadLetterQueue != "" { // there is none with DEADLETTER_MODE=reject
			g.configure = append(g.configure, q.DeadLetterQueue)
		}
		if q.Ordering.kept() { // nothing goes through wait queues
			continue
		}
		for _, step := range waitSteps(q.Retry.Backoff, q.Retry.Hold) {
			wait := waitQueue(q.Name, step)
			g.configure, g.read = append(g.configure, wait), append(g.read, wait)
		}
	}
	return g
}

// command is the line that grants all of it.
func (g grants) command(vhost, user string) string {
	words := []string{"rabbitmqctl", "set_permissions", "-p", vhost, user, pattern(g.configure), pattern(g.write), pattern(g.read)}
	for i := range words[3:] {
		words[3+i] = shellQuoted(words[3+i])
	}
	return strings.Join(words, " ")
}

// pattern matches exactly these names. It matches none, and so grants nothing, when there are none.
func pattern(names []string) string {
	quoted := make([]string, 0, len(names))
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			quoted = append(quoted, regexp.QuoteMeta(name))
		}
		seen[name] = true
	}
	if len(quoted) == 1 {
		return "^" + quoted[0] + "$"
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_./@:-]+$`)

// shellQuoted is a word as a shell takes it.
func shellQuoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// refusal is what the broker says when a permission is missing.
type refusal struct {
	needed      access
	name        string // of the queue or exchange; "" when the vhost itself is refused
	vhost, user string
}

var (
	refusedResource = regexp.MustCompile(`(?s)(?:(configure|write|read) )?access to (queue|exchange) '(.*)' in vhost '(.*)' refused for user '(.*)'`)
	refusedVhost    = regexp.MustCompile(`(?s)access to vhost '(.*)' refused for user '(.*)'`)
)

// parseRefusal reads the broker's words. needed is the permission that the operation takes on a queue, if it is known;
// brokers from 3.12 on say which one is missing. An exchange is only ever written to.
func parseRefusal(words string, needed access) *refusal {
	if m := refusedResource.FindStringSubmatch(words); m != nil {
		r := &refusal{needed: needed, name: m[3], vhost: m[4], user: m[5]}
		switch {
		case m[1] == string(accessConfigure) && needed != "":
			// It is looked at first: what else is needed may lack too. And 4.3 says it to who may do nothing with a queue
			// and only asks for it, which any permission would allow.
		case m[1] != "":
			r.needed = access(m[1])
		case m[2] == "exchange":
			r.needed = accessWrite
		}
		return r
	}
	if m := refusedVhost.FindStringSubmatch(words); m != nil {
		return &refusal{vhost: m[1], user: m[2]}
	}
	return nil
}

// remedy names the one pattern that is missing.
func (r *refusal) remedy() string {
	switch {
	case r == nil:
		return "grant the user the permission named here"
	case r.name == "":
		return fmt.Sprintf("the user %s has no permissions in the vhost %s: grant them", r.user, r.vhost)
	}
	return fmt.Sprintf("grant the user %s in the vhost %s: %s %s", r.user, r.vhost, r.needed, pattern([]string{r.name}))
}

// advise adds the command that grants everything that the process may need to an error about a missing permission.
func (g grants) advise(err error) error {
	t, ok := errors.AsType[*brokerTrouble](err)
	if !ok || t.refused == nil {
		return err
	}
	return fmt.Errorf("%w; all that this process needs: %s", err, g.command(t.refused.vhost, t.refused.user))
}
