/* What there is. Variables that only the properties read are marked "ghost". */

mtype = { absent, processing, waiting, done, dead }; /* record */
mtype = { ready, unacked, gone };                    /* delivery */
mtype = { undo_none, undo_delete, undo_restore };
mtype = { claimed, found_done, found_dead, busy, applied, not_ours };                        /* answers of the store */
mtype = { failed, deferred, unknown };                                                       /* why a message waits */
mtype = { nothing, op_claim, op_wait, op_bury, op_release, op_clear };                       /* requests on the wire */
mtype = { idle, claiming, about_to_post, posting, succeeding, retrying, burying, publishing, /* where a replica is */
          acking, acking_letter, clearing, releasing, looking, clearing_flag };

/* The record. Time is a flag: over says that nothing more has to be waited for, the lease and the deadline of a
 * processing record, the not-before of a waiting one. */
typedef Record {
  mtype state;
  byte token;    /* processing: the claim's; waiting: ghost, of the request that led here */
  bit over;
  bit ever;      /* an outcome was ever unknown */
  byte attempts; /* without the deferred ones */
  byte unknowns;
  byte dead_id;
  mtype undo
}
Record rec, previous; /* previous: what a release restores */

typedef Delivery {
  mtype at;
  byte header /* the dead-id that it carries, 0: none */
}
Delivery delivery[SLOTS];

/* A replica's handler and what it knows. */
typedef Replica {
  mtype pc;
  byte mine;     /* the delivery in hand */
  bit session;   /* the session that brought it lives */
  byte token;
  bit fresh;     /* by the local clock, lease and deadline leave room for a POST; never later than the store's own */
  bit flag;      /* from the claim: ever unknown, */
  byte attempts; /* attempts, */
  byte unknowns; /* unknown outcomes */
  mtype class;   /* retrying: why */
  bit uncertain; /* burying: the last outcome is unknown */
  bit known;     /* burying: a POST led here, and its outcome is known */
  byte dead_id;
  bit keep;      /* the dead record stays after the ack */
  bit paid;      /* the delivery was acked before the success was recorded */
#ifdef LETTER_FIRST
  bit unburied;  /* the letter goes first, "dead" is still to be written */
#endif
  bit early      /* ghost: no success was recorded when the claim was granted */
}
Replica r[REPLICAS];
#define my r[me]
#define DELIVERY delivery[my.mine]

byte work; /* the token of the request that the service works on, 0: none. One is enough: a second is a violation */

#ifdef LOOKUP
bit worked; /* the service has done the work, whether or not its answer was heard; a lookup asks for it */
#define WORK_IS_DONE() worked = 1
#else
#define WORK_IS_DONE() skip
#endif

/* A request that is still on its way when its sender has given up on it. */
typedef Request { mtype word; byte token, dead_id; mtype class; bit uncertain, known }
Request wire;

#define DEAD_IDS 6
bit letter[DEAD_IDS]; /* in the dead-letter queue there is a letter with this dead-id, perhaps more than one */

byte crashes = CRASHES, stops = STOPS, lost = LOST, late = LATE, sessions = SESSIONS, outages = OUTAGES,
     unreachable = UNREACHABLE, deferrals = DEFERRALS, redrives = REDRIVES;

/* ghosts */
bit answered_done; /* the service answered "done" */
bit recorded;      /* a success was recorded */
bit acked_success; /* a delivery left its queue because of a success */
bit excused;       /* ... which could not be recorded: rabbitonce counts it as unrecorded */
bit posted;        /* a request began */
byte open_posts;   /* requests whose outcome is not recorded as known */
byte open_since;   /* the same, since an operator last opened the record */
bit published[DEAD_IDS], closed[DEAD_IDS]; /* a letter was published; its delivery was acked, or it was opened */

hidden mtype verdict; /* the latest answer of the store; lives within one step */
hidden byte i, hand, mark; /* so do these */

/* Names are recycled: one that nobody remembers is as good as one that never was. */
#if REPLICAS == 3
#define ANY(f, x) (r[0].f == x || r[1].f == x || r[2].f == x)
#else
#define ANY(f, x) (r[0].f == x || r[1].f == x)
#endif
#if SLOTS == 3
#define ANY_HEADER(x) (delivery[0].header == x || delivery[1].header == x || delivery[2].header == x)
#define ANY_AT(x) (delivery[0].at == x || delivery[1].at == x || delivery[2].at == x)
#define ALL_GONE (delivery[0].at == gone && delivery[1].at == gone && delivery[2].at == gone)
#else
#define ANY_HEADER(x) (delivery[0].header == x || delivery[1].header == x)
#define ANY_AT(x) (delivery[0].at == x || delivery[1].at == x)
#define ALL_GONE (delivery[0].at == gone && delivery[1].at == gone)
#endif
#define TOKEN_USED(x) (rec.token == x || previous.token == x || work == x || wire.token == x || ANY(token, x))
#define DEAD_ID_USED(x) (rec.dead_id == x || previous.dead_id == x || wire.dead_id == x || letter[x] || ANY(dead_id, x) || ANY_HEADER(x))
