/* The store: every inline is one atomic step, as dedup/scripts/protocol.lua and dedup/protocol.go have it. Payload
 * conflicts are not here: they change no record. */

inline copy_record(to, from) {
  to.state = from.state; to.token = from.token; to.over = from.over; to.ever = from.ever;
  to.attempts = from.attempts; to.unknowns = from.unknowns; to.dead_id = from.dead_id; to.undo = from.undo
}

inline clear_record(x) {
  x.state = absent; x.token = 0; x.over = 0; x.ever = 0; x.attempts = 0; x.unknowns = 0; x.dead_id = 0; x.undo = undo_none
}

inline claim_as(whose, back) {
  rec.state = processing; rec.token = whose; rec.over = 0; rec.dead_id = 0; rec.undo = back; verdict = claimed
}

inline take(whose) { /* a record that was there: a release restores it */
  copy_record(previous, rec);
  previous.undo = undo_none;
  rec.attempts++;
  claim_as(whose, undo_restore)
}

#ifdef NO_TOKEN
#define OWN(whose) false
#else
#define OWN(whose) (rec.token == whose)
#endif

#define IS_DEAD_TO(header) (rec.state == dead && (header == 0 || rec.dead_id != header))

/* The lease and the deadline of a processing record can pass: the service has ended what was asked of it before the
 * deadline (FORWARD_TIMEOUT is longer than its own limit). */
#if defined(NO_TAKEOVER)
#define MAY_RUN_OUT false
#elif defined(NO_DEADLINE)
#define MAY_RUN_OUT (rec.state == processing && !rec.over)
#else
#define MAY_RUN_OUT (rec.state == processing && !rec.over && work != rec.token)
#endif

/* Busy and waiting change nothing, so a copy that polls is a copy that waits until the answer would be another. */
#ifdef OPEN_AT_ONCE
#define MAY_OPEN true
#else
#define MAY_OPEN rec.over /* the request whose outcome is unknown has ended for certain */
#endif
#define ANSWERS(whose, header) \
  (rec.state == absent || rec.state == done || IS_DEAD_TO(header) || (rec.state == dead && MAY_OPEN) || rec.over \
   || (rec.state == processing && OWN(whose)))

inline store_claim(whose, brought) {
  if
  :: rec.state == absent ->
     rec.attempts = 1; rec.unknowns = 0; rec.ever = 0;
     claim_as(whose, undo_delete)
  :: rec.state == processing && OWN(whose) -> rec.over = 0; verdict = claimed
  :: rec.state == done -> verdict = found_done
  :: IS_DEAD_TO(brought) -> verdict = found_dead
  :: rec.state == dead && !IS_DEAD_TO(brought) && MAY_OPEN -> /* opened */
     closed[brought] = 1;
     open_since = 0;
     take(whose);
     rec.attempts = 1; rec.unknowns = 0
  :: rec.state == processing && !OWN(whose) && rec.over ->
     take(whose);
     rec.unknowns++; rec.ever = 1
  :: rec.state == waiting && rec.over -> take(whose)
  :: else -> verdict = busy
  fi;
  if
  :: verdict == claimed -> HOLDS(claim_after_ack, !acked_success || excused)
  :: else
  fi
}

#ifdef NO_CAS
#define HOLDER(whose) (rec.state == processing)
#else
#define HOLDER(whose) (rec.state == processing && rec.token == whose)
#endif

inline forget_undo() { rec.undo = undo_none; clear_record(previous) }

inline refuse() {
  if
  :: rec.state == done -> verdict = found_done
  :: else -> verdict = not_ours
  fi
}

inline outcome_known() {
  if :: open_posts > 0 -> open_posts-- :: else fi;
  if :: open_since > 0 -> open_since-- :: else fi
}

inline forget_unknown() {
#ifdef NO_STICKY
  rec.ever = 0
#else
  skip
#endif
}

inline store_wait(whose, why) {
  if
  :: HOLDER(whose) ->
     verdict = applied;
     rec.state = waiting; rec.token = whose; rec.over = 0;
     forget_undo();
     if
     :: why == unknown -> rec.unknowns++; rec.ever = 1
     :: why == deferred -> rec.attempts--; forget_unknown(); outcome_known()
     :: else -> forget_unknown(); outcome_known()
     fi
  :: else -> refuse()
  fi
}

inline store_bury(whose, name, unsure, sure) {
  if
  :: HOLDER(whose) ->
     verdict = applied;
     rec.state = dead; rec.dead_id = name;
     forget_undo();
     if
     :: unsure -> rec.unknowns++; rec.ever = 1; rec.over = 0 /* the token stays, for the deadline */
     :: else -> rec.token = 0; rec.over = 1
     fi;
     if :: sure -> outcome_known() :: else fi
  :: else -> refuse()
  fi
}

#ifdef CLEAR_ANYWAY
#define CLEARS(whose) (rec.state == processing || rec.state == waiting)
#else
#define CLEARS(whose) HOLDER(whose)
#endif

inline store_clear(whose) { /* the service says that there was no work */
  if
  :: CLEARS(whose) ->
     verdict = applied;
     if
     :: rec.ever -> open_posts = 0; open_since = 0
     :: else
     fi;
     rec.ever = 0; rec.unknowns = 0
  :: else -> refuse()
  fi
}

inline store_release(whose) {
  if
  :: HOLDER(whose) && rec.undo == undo_restore ->
     verdict = applied;
#ifdef RELEASE_DELETES
     clear_record(rec);
#else
     copy_record(rec, previous);
#endif
     clear_record(previous)
  :: HOLDER(whose) && rec.undo == undo_delete -> verdict = applied; clear_record(rec)
  :: else -> refuse()
  fi
}

inline store_succeed() {
  clear_record(rec);
  clear_record(previous);
  rec.state = done;
  recorded = 1
}

inline store_undead(name) {
  if
  :: rec.state == dead && !rec.ever && rec.dead_id == name -> clear_record(rec)
  :: else
  fi
}
