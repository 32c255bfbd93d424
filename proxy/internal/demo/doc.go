// Command demo shows in under a minute what rabbitonce is for: one stream of orders goes through a fan-out to two queues,
// one read by a plain consumer (POST, then ack), one by rabbitonce, each in front of the same kind of service, which
// charges orders and has no key check of its own. Both sides meet the same troubles at the same time. `make demo` runs it.
//
// # What is real
//
// RabbitMQ and Redis are servers of their own: throwaway ones, or those of RABBITMQ_URL and REDIS_URL, where the demo uses
// names that nobody else has and removes them at the end. Both consumers are processes and are killed with SIGKILL;
// rabbitonce is the built binary. Connections are cut by a TCP proxy between the broker and the consumers. The services
// answer over HTTP; a crash of theirs closes their listener and every connection.
//
// The troubles come at chosen moments, so that each run shows the same: a service signals the charge of a chosen
// order and holds its answer while the connection is cut or the consumer killed.
//
// # What the figures are made of
//
// The table and the results of the events are counted from three things only: the broker's confirms to the publisher,
// the services' journals of charges, and the dead letters (see books). What the consumers log serves to know when to look.
//
// # The plain consumer
//
// It is what many teams write by hand, and not a careless one: it acknowledges after the work, puts a message back when
// the service is away or answers 5xx, connects again for ever, and rejects what the service refuses with a 4xx. Its queue
// has no dead-letter exchange, so that a rejected message is gone.
//
// # Goroutines
//
// run owns all that it starts and waits for it; processes end with this one however it ends (see testkit).
package main
