package proxy

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// reply is a close notice as the broker sends it.
func reply(code int, words string) *amqp.Error {
	return &amqp.Error{Code: code, Reason: words, Server: true, Recover: code < 500 && code != amqp.ConnectionForced && code != amqp.InvalidPath}
}

// TestReplyReason: the words are those of RabbitMQ 3.10, 4.0 and 4.3, where they differ both.
func TestReplyReason(t *testing.T) {
	for _, c := range []struct {
		code  int
		words string
		want  sessionEnd
	}{
		{404, "NOT_FOUND - no queue 'orders' in vhost '/'", endQueueMissing},
		{404, "NOT_FOUND - home node 'rabbit@b' of durable queue 'orders' in vhost '/' is down or inaccessible", endQueueDown},
		{404, "NOT_FOUND - failed to perform operation on queue 'orders' in vhost '/' due to timeout", endQueueDown},
		{404, "NOT_FOUND - no exchange 'x' in vhost '/'", endChannelClosed},
		{403, "ACCESS_REFUSED - queue 'orders' in vhost '/' in exclusive use", endExclusive},
		{405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'orders' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.", endExclusive},
		{403, "ACCESS_REFUSED - access to queue 'orders' in vhost '/' refused for user 'u'", endPermission},
		{403, "ACCESS_REFUSED - read access to queue 'orders' in vhost '/' refused for user 'u'", endPermission},
		{403, "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'u'", endPermission},
		{530, "NOT_ALLOWED - access to vhost '/' refused for user 'u'", endPermission},
		{530, "NOT_ALLOWED - access to vhost '/' refused for user 'u': connection limit (5) is reached", endLimit},
		{530, "NOT_ALLOWED - connection refused for user 'u': user connection limit (5) is reached", endLimit},
		{530, "NOT_ALLOWED - connection refused: node connection limit (5) is reached", endLimit},
		{530, "NOT_ALLOWED - number of channels opened for user 'u' has reached the maximum allowed user limit of (5)", endLimit},
		{530, "NOT_ALLOWED - number of channels opened on node 'n' has reached the maximum allowed limit of (5)", endLimit},
		{530, "NOT_ALLOWED - number of channels opened (11) has reached the negotiated channel_max (10)", endLimit},
		{406, "PRECONDITION_FAILED - cannot declare queue 'q': queue limit in vhost '/' (5) is reached", endLimit},
		{530, "NOT_ALLOWED - vhost nowhere not found", endVhostMissing},
		{541, "INTERNAL_ERROR - access to vhost 'v' refused for user 'u': vhost 'v' is down", endVhostMissing},
		{403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.", endLoginRefused},
		{406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 1800000 ms. This timeout value can be configured, see consumers doc guide to learn more", endAckTimeout},
		{406, "PRECONDITION_FAILED - unknown delivery tag 7", endChannelClosed},
		{320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'", endConnectionClosed},
		{320, "CONNECTION_FORCED - Closed via management plugin", endConnectionClosed},
		{541, "INTERNAL_ERROR", endConnectionClosed},
	} {
		if got := replyReason(reply(c.code, c.words)); got != c.want {
			t.Errorf("%s: %v, want %v", c.words, got, c.want)
		}
	}
}

// TestBrokerErrorKeepsTheBrokersWords, says what to do, and keeps the reason when it is wrapped.
func TestBrokerErrorKeepsTheBrokersWords(t *testing.T) {
	err := fmt.Errorf("consume: %w", brokerError(reply(404, "NOT_FOUND - no queue 'orders' in vhost '/'")))
	if !strings.Contains(err.Error(), "no queue 'orders'") || !strings.Contains(err.Error(), "RABBITMQ_DECLARE") {
		t.Errorf("the words are: %v", err)
	}
	if got := whyEnded(err); got != endQueueMissing {
		t.Errorf("the reason is %v", got)
	}
	if again := brokerError(err); again != err {
		t.Errorf("worded twice: %v", again)
	}
	if err := errors.New("anything"); brokerError(err) != err || whyEnded(err) != endOther {
		t.Error("an error that is not the broker's was changed")
	}
}

func TestChannelEnd(t *testing.T) {
	for name, c := range map[string]struct {
		notice *amqp.Error
		want   sessionEnd
	}{
		"no notice":    {nil, endNetwork},
		"cut":          {&amqp.Error{Code: amqp.FrameError, Reason: "EOF"}, endNetwork},
		"undecodable":  {&amqp.Error{Code: amqp.FrameError, Reason: amqp.ErrSyntax.Error()}, endUndecodable},
		"forced":       {reply(320, "CONNECTION_FORCED - Closed via management plugin"), endConnectionClosed},
		"queue locked": {reply(405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue"), endExclusive},
	} {
		if got := whyEnded(channelEnd(c.notice)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestLoginErrors(t *testing.T) {
	password, certificate := login{username: "u", password: "p"}, login{external: true}
	for name, c := range map[string]struct {
		err   error
		who   login
		want  sessionEnd
		words string
	}{
		"refused":                 {reply(403, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN."), password, endLoginRefused, "RABBITMQ_PASSWORD"},
		"certificate refused":     {reply(403, "ACCESS_REFUSED - Login was refused using authentication mechanism EXTERNAL."), certificate, endLoginRefused, "ssl_cert_login_from"},
		"no login by certificate": {amqp.ErrSASL, certificate, endLoginRefused, "rabbitmq_auth_mechanism_ssl"},
		"no login by password":    {amqp.ErrSASL, password, endLoginRefused, "auth_mechanisms"},
		"lost in the login":       {amqp.ErrCredentials, password, endNetwork, "during the login"},
		"lost at the vhost":       {amqp.ErrVhost, password, endNetwork, "during the login"},
		"lost before":             {&amqp.Error{Code: amqp.FrameError, Reason: "EOF"}, password, endNetwork, "amqps://"},
		"alert":                   {&amqp.Error{Code: amqp.FrameError, Reason: "remote error: tls: expired certificate"}, password, endTLS, "RABBITMQ_TLS_CERT_FILE"},
		"vhost":                   {reply(530, "NOT_ALLOWED - vhost nowhere not found"), password, endVhostMissing, "%2F"},
	} {
		err := loginError(c.err, c.who, false)
		if got := whyEnded(err); got != c.want || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, %v; want %v, %q", name, got, err, c.want, c.words)
		}
	}
	for _, lost := range []error{&amqp.Error{Code: amqp.FrameError, Reason: "EOF"}, syscall.ECONNRESET} { // over TLS, without the alert that says why
		if err := loginError(lost, certificate, true); whyEnded(err) != endTLS || !strings.Contains(err.Error(), "RABBITMQ_TLS_CERT_FILE") {
			t.Errorf("over TLS: %v", err)
		}
		if err := loginError(lost, password, false); whyEnded(err) != endNetwork {
			t.Errorf("without TLS: %v", err)
		}
	}
}
