/* Bounds. Every fault has a budget; when all are spent the faults have ended, and everything must settle. */

#ifndef REPLICAS
#define REPLICAS 2 /* 2 or 3; each has one delivery in hand at a time */
#endif
#ifndef COPIES
#define COPIES 2 /* deliveries of the one ID that are in the queue at the start */
#endif
#ifndef SLOTS
#define SLOTS COPIES /* deliveries that there can be at once, letters that were put back included */
#endif
#ifndef MAX_ATTEMPTS
#define MAX_ATTEMPTS 2 /* RETRY_MAX_ATTEMPTS */
#endif
#ifndef UNKNOWN_MAX
#define UNKNOWN_MAX 1 /* FORWARD_UNKNOWN_MAX */
#endif
#ifdef DEADLETTER /* FORWARD_ON_UNKNOWN=deadletter instead of retry */
#define NEVER_REPEAT_UNKNOWN 1
#else
#define NEVER_REPEAT_UNKNOWN 0
#endif

/* LOOKUP: FORWARD_ON_UNKNOWN=lookup. UNREACHABLE is then also a lookup without an answer. */

#ifndef CRASHES
#define CRASHES 0 /* kill -9, at any step */
#endif
#ifndef STOPS
#define STOPS 0 /* a holder that lives is too slow for its lease and its deadline: SIGSTOP, a long pause */
#endif
#ifndef LOST
#define LOST 0 /* the store acted and the caller heard nothing; also what a store restart without loss looks like */
#endif
#ifndef LATE
#define LATE 0 /* the caller heard nothing and repeats; its first request acts at any later time */
#endif
#ifndef SESSIONS
#define SESSIONS 0 /* the broker's session ends: redelivery, and the old settlement is dropped or lost on its way */
#endif
#ifndef OUTAGES
#define OUTAGES 0 /* the store is away for longer than a lease while a success is to be recorded */
#endif
#ifndef UNREACHABLE
#define UNREACHABLE 0 /* the service refuses a connection */
#endif
#ifndef DEFERRALS
#define DEFERRALS 0 /* the service answers "later" */
#endif
#ifndef REDRIVES
#define REDRIVES 0 /* a letter is put back, with its dead-id or by a tool that drops the headers */
#endif

/*
 * Variants: each takes one rule out, and .ci/model expects the violation of the property named here.
 *   NO_TOKEN            not_blamed         a repeated claim is not recognised
 *   TOKEN_PER_DELIVERY  one_at_a_time      one token for all claims of a delivery
 *   ACK_FIRST           claim_after_ack    a success is acked, then recorded
 *   NO_CAS              one_at_a_time      a result is written whoever holds the record
 *   NO_STICKY           flagged            unknown is forgotten at the next known result
 *   LETTER_FIRST        letter_final       the letter is published, then "dead" is written
 *   RELEASE_DELETES     flagged            release deletes instead of restoring
 *   NO_LEASE_CHECK      one_at_a_time      no look at the lease right before the POST
 *   NO_DEADLINE         one_at_a_time      takeover when the lease is over, without waiting for the request's deadline
 *   FREE_REDRIVE        after_success,     redrive deletes the record, whatever it is
 *                       second_unknown,
 *                       one_at_a_time
 *   OPEN_AT_ONCE        one_at_a_time      a letter put back opens its record while the service may be at work on the last request
 *   ACK_BEFORE_LETTER   no_loss            the delivery of a dead message is acked before its letter is published
 *   NO_TAKEOVER         settles            nobody takes over a lease that ran out
 *   LOOKUP_BLIND        -                  a service that says "not done" while it is at work is asked after the deadline: harmless;
 *   and NO_DEADLINE     one_at_a_time      asked before it
 *   CLEAR_ANYWAY        once_only          "not done" is written whoever holds the record
 * Limits, which the protocol has and docs/protocol.md names:
 *   STRICT_SUCCESS      after_success      in its strictest reading
 */
