package forward

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

const (
	userAgent   = "rabbitonce"
	queueHeader = "RabbitMQ-Queue"
	// maxKey bounds the Idempotency-Key; services keep it in a column of limited
	// length, and servers limit a header.
	maxKey = 512
	// maxOwnValue bounds a header of FORWARD_HEADERS that the message fills.
	maxOwnValue = 1 << 10
	// deadlineFormat is RFC 3339 to the millisecond.
	deadlineFormat = "2006-01-02T15:04:05.000Z07:00"
)

// Request is one message to be sent.
type Request struct {
	// Queue, Exchange and RoutingKey say where the message came from.
	Queue, Exchange, RoutingKey string
	// IdempotencyKey names the message to the service; "" sends none.
	IdempotencyKey string
	// Attempt counts the requests for this message, from 1.
	Attempt int
	// OutcomeUnknown says that an earlier request for this message may have worked.
	OutcomeUnknown bool
	// Timeout bounds this request; 0, or more than Config.Timeout, is
	// Config.Timeout.
	Timeout time.Duration
	// Permit is asked right before the first byte leaves, also after a pause of the
	// whole process; an error stops the request, whose outcome is then Unreachable
	// and wraps it. It must not block. nil permits.
	Permit func() error

	// The message's properties; an empty one is not sent.
	MessageID, CorrelationID, Type, AppID, ReplyTo string
	ContentType, ContentEncoding                   string
	Timestamp                                      time.Time
	Priority                                       uint8
	Redelivered                                    bool
	// Headers are the message's headers: nil, bool, integers and floats of every
	// size, string, []byte, time.Time, fmt.Stringer, []any and map[string]any, also
	// as types of other names.
	Headers map[string]any
	// Body is sent as it is.
	Body []byte
}

// staticHeader is a header that is the same for all requests of a queue. Its
// values are shared: net/http does not change them.
type staticHeader struct {
	name   string
	values []string
}

func staticHeaders(queue, auth string) []staticHeader {
	static := []staticHeader{
		{"User-Agent", []string{userAgent}},
		{queueHeader, []string{encodeValue(queue)}},
	}
	if auth != "" {
		static = append(static, staticHeader{"Authorization", []string{auth}})
	}
	return static
}

// renderStatic writes headers as they are sent.
func renderStatic(static []staticHeader) []byte {
	var s headerSet
	for _, header := range static {
		s.put(header.name, header.values[0])
	}
	return s.text
}

// headerSet is the text of headers.
type headerSet struct{ text []byte }

// set adds a header under exactly this spelling; an empty value adds none. The
// value has to be legal.
func (s *headerSet) set(name, value string) {
	if value != "" {
		s.put(name, value)
	}
}

// put is set that also adds an empty value.
func (s *headerSet) put(name, value string) {
	s.begin(name)
	s.text = append(s.text, value...)
	s.end()
}

func (s *headerSet) begin(name string) {
	s.text = append(s.text, name...)
	s.text = append(s.text, ": "...)
}

func (s *headerSet) end() { s.text = append(s.text, "\r\n"...) }

func (s *headerSet) putInt(name string, value int) {
	s.begin(name)
	s.text = strconv.AppendInt(s.text, int64(value), 10)
	s.end()
}

func (s *headerSet) putTime(name string, value time.Time, format string) {
	s.begin(name)
	s.text = value.AppendFormat(s.text, format)
	s.end()
}

// appendHead appends the request line and all headers of a request, and tells how much of what the publisher sent had no room
// in them. Everything in it is legal in HTTP.
func (c *Client) appendHead(b []byte, address string, r *Request, deadline time.Time) (head []byte, dropped int) {
	s := headerSet{text: b}
	s.text = append(s.text, "POST "...)
	s.text = append(s.text, address...)
	s.text = append(s.text, " HTTP/1.1\r\n"...)
	s.put("Host", c.hostHeader)
	dropped = c.appendHeaders(&s, r, deadline)
	if c.keepsNone {
		s.put("Connection", "close")
	}
	s.putInt("Content-Length", len(r.Body))
	s.end()
	return s.text, dropped
}

// appendHeaders appends the headers that tell of the message, and tells how much
// of what the publisher sent had no room.
func (c *Client) appendHeaders(s *headerSet, r *Request, deadline time.Time) (dropped int) {
	if r.Queue == "" || r.Queue == c.queue {
		s.text = append(s.text, c.common...)
	} else {
		for _, static := range c.static {
			if static.name == queueHeader {
				s.put(queueHeader, encodeValue(r.Queue))
			} else {
				s.put(static.name, static.values[0])
			}
		}
	}
	s.set("Idempotency-Key", c.config.IdempotencyKey.write(idempotencyKey(r.IdempotencyKey)))
	s.putInt("Delivery-Attempt", r.Attempt)
	if r.OutcomeUnknown {
		s.put("Delivery-Outcome-Unknown", "true")
	}
	s.putTime("Delivery-Deadline", deadline.UTC(), deadlineFormat)
	s.set("RabbitMQ-Exchange", encodeValue(r.Exchange))
	s.set("RabbitMQ-Routing-Key", encodeValue(r.RoutingKey))
	if !r.Timestamp.IsZero() {
		s.put("RabbitMQ-Timestamp", formatTime(r.Timestamp))
	}
	if r.Priority > 0 {
		s.putInt("RabbitMQ-Priority", int(r.Priority))
	}
	if r.Redelivered {
		s.put("RabbitMQ-Redelivered", "true")
	}
	typ, encoding := contentHeaders(r.ContentType, r.ContentEncoding, r.Body, c.config.ContentType)
	s.put("Content-Type", typ)
	s.set("Content-Encoding", encoding)
	for _, own := range c.own {
		value, _ := own.value.fill(r, encodeValue, nil)
		if len(value) > maxOwnValue {
			dropped++
			continue
		}
		s.set(own.name, value)
	}
	return dropped + addForeign(s, r)
}

// digestPrefix begins the key of an ID that is too long to be sent.
const digestPrefix = "sha256:"

// idempotencyKey makes an ID a legal header value of bounded length. An ID that is
// too long is replaced by its digest: as unique, and short enough for a service to
// store.
func idempotencyKey(id string) string {
	key := encodeValue(id)
	if rest, ok := strings.CutPrefix(key, digestPrefix); ok {
		key = "sha256%3A" + rest // so that no ID reads as another's digest
	}
	if len(key) <= maxKey {
		return key
	}
	sum := sha256.Sum256([]byte(id))
	return digestPrefix + hex.EncodeToString(sum[:])
}
