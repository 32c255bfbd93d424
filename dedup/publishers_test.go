package dedup

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// publisherMessage is a message as a library or framework puts it on the wire,
// and a DEDUP_ID_FROM that finds its ID there. docs/message-ids.md recommends
// exactly these settings and names the source of each fact.
type publisherMessage struct {
	publisher string // as the first column of the table in docs/message-ids.md
	from      string
	envelope  Envelope
	want      string
}

const (
	publisherUUID = "5b1c9f0e-8d6a-4a57-9d0e-0c7b8e5f3a21"
	// conversationUUID is what several messages of one conversation share.
	conversationUUID = "0f4e7a58-3c1d-4c7c-8a5e-b1a2c3d4e5f6"
)

// publisherMessages returns fresh values, so that no test can change another's.
func publisherMessages() []publisherMessage {
	return slices.Concat(dotnetMessages(), springMessages(), pythonMessages(), phpMessages(), eventMessages(), clientMessages())
}

func dotnetMessages() []publisherMessage {
	nServiceBus := Envelope{
		MessageID: publisherUUID, CorrelationID: conversationUUID,
		Type: "Shop.Messages.ChargeOrder", RoutingKey: "Billing",
		Headers: map[string]any{
			"NServiceBus.MessageId":            publisherUUID,
			"NServiceBus.CorrelationId":        conversationUUID,
			"NServiceBus.ConversationId":       conversationUUID,
			"NServiceBus.MessageIntent":        "Send",
			"NServiceBus.ContentType":          "application/json",
			"NServiceBus.EnclosedMessageTypes": "Shop.Messages.ChargeOrder, Shop.Messages, Version=1.0.0.0",
			"NServiceBus.TimeSent":             "2026-01-05 10:00:00:000000 Z",
		},
		Body: []byte("\ufeff" + `{"OrderId":42}`), // no ID is read from it: a byte order mark does no harm
	}
	massTransit := Envelope{
		MessageID: publisherUUID, CorrelationID: conversationUUID, Exchange: "Shop.Contracts:OrderSubmitted",
		Headers: map[string]any{"Content-Type": "application/vnd.masstransit+json"},
		Body: []byte(`{
  "messageId": "` + publisherUUID + `",
  "requestId": null,
  "correlationId": "` + conversationUUID + `",
  "conversationId": "` + conversationUUID + `",
  "initiatorId": null,
  "sourceAddress": "rabbitmq://localhost/shop",
  "destinationAddress": "rabbitmq://localhost/Shop.Contracts:OrderSubmitted",
  "messageType": ["urn:message:Shop.Contracts:OrderSubmitted"],
  "message": {"messageId": "the order's own field", "orderId": 42},
  "sentTime": "2026-01-05T10:00:00Z",
  "headers": {}
}`),
	}
	return []publisherMessage{
		{"NServiceBus", "message-id", nServiceBus, publisherUUID},
		{"NServiceBus", "header:NServiceBus.MessageId", nServiceBus, publisherUUID},
		{"MassTransit", "message-id", massTransit, publisherUUID},
		{"MassTransit", "json:/messageId", massTransit, publisherUUID},
		{"Wolverine", "message-id", Envelope{
			MessageID: publisherUUID, CorrelationID: conversationUUID, Type: "Shop.OrderPlaced",
			Headers: map[string]any{"conversation-id": conversationUUID, "attempts": "0"}, Body: []byte(`{"orderId":42}`),
		}, publisherUUID},
		{"EasyNetQ", "correlation-id", Envelope{
			CorrelationID: publisherUUID, Type: "Shop.OrderPlaced, Shop", Exchange: "Shop.OrderPlaced, Shop", Body: []byte(`{"OrderId":42}`),
		}, publisherUUID},
		{"CAP", "header:cap-msg-id", Envelope{
			Exchange: "cap.default.router", RoutingKey: "orders.placed",
			Headers: map[string]any{
				"cap-msg-id": "1449332658174590977", "cap-corr-id": "1449332658174590977", "cap-corr-seq": "0",
				"cap-msg-name": "orders.placed", "cap-msg-type": "OrderPlaced", "cap-senttime": "01/05/2026 10:00:00",
			},
			Body: []byte(`{"OrderId":42}`),
		}, "1449332658174590977"},
	}
}

func springMessages() []publisherMessage {
	return []publisherMessage{
		{"Spring Cloud Stream, Spring Integration", "message-id", Envelope{
			MessageID: publisherUUID, Exchange: "orders", RoutingKey: "orders",
			Headers: map[string]any{"contentType": "application/json", "id": "not the message's"}, Body: []byte(`{"orderId":42}`),
		}, publisherUUID},
		{"Spring AMQP", "message-id", Envelope{
			MessageID: publisherUUID, Exchange: "orders", RoutingKey: "order.placed",
			Headers: map[string]any{"__TypeId__": "shop.OrderPlaced"}, Body: []byte(`{"orderId":42}`),
		}, publisherUUID},
	}
}

func pythonMessages() []publisherMessage {
	celery2 := Envelope{
		CorrelationID: publisherUUID, RoutingKey: "celery",
		Headers: map[string]any{
			"lang": "py", "task": "shop.tasks.charge", "id": publisherUUID, "root_id": publisherUUID, "parent_id": nil,
			"group": nil, "eta": nil, "expires": nil, "retries": int32(0), "timelimit": []any{nil, nil},
			"argsrepr": "(42,)", "kwargsrepr": "{}", "origin": "gen7@web-1", "ignore_result": false, "stamps": map[string]any{},
		},
		Body: []byte(`[[42], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`),
	}
	celery1 := Envelope{
		CorrelationID: publisherUUID, RoutingKey: "celery", Headers: map[string]any{},
		Body: []byte(`{"task": "shop.tasks.charge", "id": "` + publisherUUID + `", "args": [42], "kwargs": {"id": "an argument"}, ` +
			`"group": null, "retries": 0, "eta": null, "expires": null, "utc": true, "callbacks": null, "errbacks": null, ` +
			`"timelimit": [null, null], "taskset": null, "chord": null}`),
	}
	return []publisherMessage{
		{"Celery", "correlation-id", celery2, publisherUUID},
		{"Celery", "correlation-id", celery1, publisherUUID},
		{"Celery", "header:id", celery2, publisherUUID},
		{"Celery", "json:/id", celery1, publisherUUID},
	}
}

func phpMessages() []publisherMessage {
	laravel := Envelope{
		CorrelationID: publisherUUID, RoutingKey: "default",
		Headers: map[string]any{"laravel": map[string]any{"attempts": int32(0)}},
		Body: []byte(`{"uuid":"9a3d2c1b-0000-4000-8000-1234567890ab","displayName":"App\\Jobs\\ChargeOrder",` +
			`"job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":null,"timeout":null,` +
			`"data":{"id":"inside","commandName":"App\\Jobs\\ChargeOrder","command":"O:20:\"App\\Jobs\\ChargeOrder\":1:{s:5:\"order\";i:42;}"},` +
			`"id":"` + publisherUUID + `"}`),
	}
	return []publisherMessage{
		{"Laravel queue", "correlation-id", laravel, publisherUUID},
		{"Laravel queue", "json:/id", laravel, publisherUUID},
		{"Symfony Messenger", "message-id", Envelope{
			MessageID: publisherUUID, Exchange: "messages",
			Headers: map[string]any{"type": `App\Message\ChargeOrder`, "X-Message-Stamp-Symfony\\Component\\Messenger\\Stamp\\BusNameStamp": "[]"},
			Body:    []byte(`{"orderId":42}`),
		}, publisherUUID},
	}
}

func eventMessages() []publisherMessage {
	structured := Envelope{
		Exchange: "orders",
		Body: []byte(`{"specversion":"1.0","type":"com.example.order.placed","source":"/shop","id":"` + publisherUUID + `",` +
			`"time":"2026-01-05T10:00:00Z","datacontenttype":"application/json","data":{"id":"the order's","orderId":42}}`),
	}
	dapr := structured
	dapr.Body = []byte(`{"data":{"orderId":42},"datacontenttype":"application/json","id":"` + publisherUUID + `","pubsubname":"pubsub",` +
		`"source":"checkout","specversion":"1.0","time":"2026-01-05T10:00:00Z","topic":"orders",` +
		`"traceid":"00-113ad9c4e42b27583ae98ba698d54255-e3743e35ff56f219-01","type":"com.dapr.event.sent"}`)
	binary := func(prefix string) Envelope {
		return Envelope{
			Headers: map[string]any{
				prefix + "specversion": "1.0", prefix + "type": "com.example.order.placed",
				prefix + "source": "/shop", prefix + "id": publisherUUID,
			},
			Body: []byte(`{"orderId":42}`),
		}
	}
	return []publisherMessage{
		{"CloudEvents, structured mode", "json:/id", structured, publisherUUID},
		{"CloudEvents, binary mode", "header:cloudEvents:id", binary("cloudEvents:"), publisherUUID},
		{"CloudEvents, binary mode", "header:cloudEvents_id", binary("cloudEvents_"), publisherUUID},
		{"Dapr", "json:/id", dapr, publisherUUID},
		// A Java client sends a byte array as such, and the value may be JSON itself.
		{"Debezium Server, outbox event router", "header:id", Envelope{
			Exchange: "outbox.event.order", Headers: map[string]any{"id": []byte(publisherUUID)}, Body: []byte(`{"orderId":42}`),
		}, publisherUUID},
		{"Debezium Server, outbox event router", "header:id", Envelope{
			Exchange: "outbox.event.order", Headers: map[string]any{"id": `"` + publisherUUID + `"`}, Body: []byte(`{"orderId":42}`),
		}, `"` + publisherUUID + `"`},
	}
}

func clientMessages() []publisherMessage {
	const both = "message-id,header:x-message-id"
	long := strings.Repeat("urn:shop:order:", 20)
	messages := []publisherMessage{
		// RabbitMQ's conversions: a UUID, an unsigned long, a text that is no short string, bytes.
		{"AMQP 1.0 clients", both, Envelope{MessageID: "urn:uuid:" + publisherUUID}, "urn:uuid:" + publisherUUID},
		{"AMQP 1.0 clients", both, Envelope{MessageID: "18446744073709551615"}, "18446744073709551615"},
		{"AMQP 1.0 clients", both, Envelope{Headers: map[string]any{"x-message-id": long}}, long},
		{"AMQP 1.0 clients", both, Envelope{Headers: map[string]any{"x-message-id": []byte{0xff, 0x00, 0x01}}}, "\xff\x00\x01"},
	}
	for _, client := range []string{"Java client", "pika", "php-amqplib", "amqplib", "RabbitMQ.Client", "amqp091-go"} {
		messages = append(messages, publisherMessage{client, "message-id", Envelope{
			MessageID: publisherUUID, Exchange: "orders", RoutingKey: "order.placed", Body: []byte(`{"orderId":42}`),
		}, publisherUUID})
	}
	return messages
}

func TestPublishersAsTheySend(t *testing.T) {
	for _, message := range publisherMessages() {
		t.Run(message.publisher+" "+message.from, func(t *testing.T) {
			sources := ParseSources(message.from)
			if len(sources.problems) > 0 {
				t.Fatal(sources.problems)
			}
			got, found := sources.Identify(message.envelope)
			if !found || got.Value != message.want {
				t.Errorf("got %q, %v; want %q", got.Value, found, message.want)
			}
		})
	}
}

// TestPublishersWithoutAnID: what these send of their own accord has no ID, and
// nothing else in the message is taken for one.
func TestPublishersWithoutAnID(t *testing.T) {
	for name, envelope := range map[string]Envelope{
		"a plain client": {Exchange: "orders", RoutingKey: "order.placed", Body: []byte(`{"orderId":42}`)},
		"Spring AMQP": {
			Exchange: "orders", Headers: map[string]any{"__TypeId__": "shop.OrderPlaced"}, Body: []byte(`{"orderId":42}`),
		},
		"Symfony Messenger": {
			Exchange: "messages", Headers: map[string]any{"type": `App\Message\ChargeOrder`}, Body: []byte(`{"orderId":42}`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := ParseSources("message-id,header:x-message-id,correlation-id,header:id,json:/id,json:/messageId")
			if got, found := all.Identify(envelope); found {
				t.Errorf("found %q", got)
			}
		})
	}
}

// TestBodiesThatPointersCannotRead: the ID of these has to be somewhere else.
func TestBodiesThatPointersCannotRead(t *testing.T) {
	for name, body := range map[string]string{
		"compressed":          "\x78\x9c\x8b\x8e\x36\x31\x8a\xd5\x51\xa8\xae\x05\x00",
		"XML":                 `<OrderPlaced><id>42</id></OrderPlaced>`,
		"serialized by PHP":   `O:8:"stdClass":1:{s:2:"id";i:42;}`,
		"with a byte order":   "\ufeff" + `{"id":"42"}`,
		"two documents":       `{"id":"42"}` + "\n" + `{"id":"43"}`,
		"in UTF-16":           "{\x00\"\x00i\x00d\x00\"\x00:\x004\x002\x00}\x00",
		"Celery 2's body":     `[[42], {"id": "42"}, {"callbacks": null}]`,
		"an ID that is a map": `{"id":{"$oid":"596e275826f08b2730779e1f"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, found := ParseSources("json:/id").Identify(Envelope{Body: []byte(body)}); found {
				t.Errorf("found %q", got)
			}
		})
	}
}

// TestConversationsShareTheirCorrelationID: three messages of one conversation are
// three by message-id and one by correlation-id, which would drop two of them.
func TestConversationsShareTheirCorrelationID(t *testing.T) {
	conversation := []Envelope{
		{MessageID: "m-1", CorrelationID: conversationUUID, Type: "PlaceOrder"},
		{MessageID: "m-2", CorrelationID: conversationUUID, Type: "OrderPlaced"},
		{MessageID: "m-3", CorrelationID: conversationUUID, Type: "PlaceOrderReply"},
	}
	for from, want := range map[string]int{"message-id": 3, "correlation-id": 1} {
		keys := map[string]bool{}
		for _, envelope := range conversation {
			id, _ := ParseSources(from).Identify(envelope)
			keys[Key("rabbitonce", "//orders", id)] = true
		}
		if len(keys) != want {
			t.Errorf("%s: %d keys for 3 messages, want %d", from, len(keys), want)
		}
	}
}

// TestFallbacksDoNotMeet: with a list of sources one message's message ID is not
// another one's correlation ID, though the text is the same.
func TestFallbacksDoNotMeet(t *testing.T) {
	sources := ParseSources("message-id,correlation-id,header:id,json:/id")
	keys := map[string]bool{}
	for _, envelope := range []Envelope{
		{MessageID: "42"},
		{CorrelationID: "42"},
		{Headers: map[string]any{"id": "42"}},
		{Body: []byte(`{"id":42}`)},
	} {
		id, found := sources.Identify(envelope)
		if !found || id.Value != "42" {
			t.Fatalf("%+v: found %q, %v", envelope, id, found)
		}
		keys[Key("rabbitonce", "//orders", id)] = true
	}
	if len(keys) != 4 {
		t.Errorf("4 messages have %d keys", len(keys))
	}
}

// TestMessageIDsPageRecommendsWhatIsTested holds the table of docs/message-ids.md
// to publisherMessages, publisher by publisher and setting by setting.
func TestMessageIDsPageRecommendsWhatIsTested(t *testing.T) {
	want := map[string][]string{}
	for _, message := range publisherMessages() {
		if !slices.Contains(want[message.publisher], message.from) {
			want[message.publisher] = append(want[message.publisher], message.from)
		}
	}
	got := documentedSettings(t)
	for _, settings := range []map[string][]string{want, got} {
		for _, list := range settings {
			slices.Sort(list)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/message-ids.md and the tests differ (-tests +page):\n%s", diff)
	}
}

// documentedSettings reads the rows "publisher | where | settings | mind | source"
// of docs/message-ids.md.
func documentedSettings(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/message-ids.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| publisher | where | `DEDUP_ID_FROM` |")
	if !found {
		t.Fatal("docs/message-ids.md has no table of publishers")
	}
	setting := regexp.MustCompile("`([^`]+)`")
	settings := map[string][]string{}
	for line := range strings.Lines(table[strings.Index(table, "\n")+1:]) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		if len(cells) != 5 || !strings.Contains(cells[4], "](https://") {
			t.Errorf("want publisher, where, settings, what to mind and a linked source: %s", line)
			continue
		}
		for _, match := range setting.FindAllStringSubmatch(cells[2], -1) {
			settings[strings.TrimSpace(cells[0])] = append(settings[strings.TrimSpace(cells[0])], match[1])
		}
	}
	return settings
}
