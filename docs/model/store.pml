/* The store: every inline is one atomic step, as dedup/scripts/protocol.lua and dedup/protocol.go have it. Payload
 * conflicts are not here: they change no record. */

inline copy_record(to, from) {
  to.state = from.state; to.token = from.token; to.over = from.over; to.ever = from.ever;
  to.attempts = from.attempts; to.unknowns = from.unknowns; to.dead_id = from.dead_id; to.undo = from.undo
}

inline clear_record(x) {
  x.state = absent; x.token = 0; x.over = 0; x.ever = 0; x.attempts = 0; x.unknowns = 0; x.dead_id = 0; x.undo = undo_none
}

inline claim_as(tok, un) {
  rec.state = processing; rec.token = tok; rec.over = 0; rec.dead_id = 0; rec.undo = un; verdict = claimed
}

inline take(tok) { /* a record that was there: a release restores it */
  copy_record(previous, rec);
  previous.undo = undo_none;
  rec.attempts++;
  claim_as(tok, undo_restore)
}

#ifdef NO_TOKEN
#define OWN(tok) false
#else
#define OWN(tok) (rec.token == tok)
#endif

/* Busy and waiting change nothing, so a copy that polls is a copy that waits until the answer would be another. */
#define ANSWERS(tok) (rec.state == absent || rec.state == done || rec.state == dead || rec.over || (rec.state == processing && OWN(tok)))

inline store_claim(tok, head) {
  if
  :: rec.state == absent ->
     rec.attempts = 1; rec.unknowns = 0; rec.ever = 0;
     claim_as(tok, undo_delete)
  :: rec.state == processing && OWN(tok) -> rec.over = 0; verdict = claimed
  :: rec.state == done -> verdict = found_done
  :: rec.state == dead && (head == 0 || rec.dead_id != head) -> verdict = found_dead
  :: rec.state == dead && head != 0 && rec.dead_id == head ->
     closed[head] = 1;
     open_since = 0;
     take(tok);
     rec.attempts = 1; rec.unknowns = 0
  :: rec.state == processing && !OWN(tok) && rec.over ->
     take(tok);
     rec.unknowns++; rec.ever = 1
  :: rec.state == waiting && rec.over -> take(tok)
  :: else -> verdict = busy
  fi;
  if
  :: verdict == claimed -> HOLDS(claim_after_ack, !acked_success || excused)
  :: else
  fi
}

#ifdef NO_CAS
#define HOLDER(tok) (rec.state == processing)
#else
#define HOLDER(tok) (rec.state == processing && rec.token == tok)
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

inline store_wait(tok, cls) {
  if
  :: HOLDER(tok) ->
     verdict = applied;
     rec.state = waiting; rec.token = tok; rec.over = 0;
     forget_undo();
     if
     :: cls == unknown -> rec.unknowns++; rec.ever = 1
     :: cls == deferred -> rec.attempts--; forget_unknown(); outcome_known()
     :: else -> forget_unknown(); outcome_known()
     fi
  :: else -> refuse()
  fi
}

inline store_bury(tok, d, unsure, kn) {
  if
  :: HOLDER(tok) ->
     verdict = applied;
     rec.state = dead; rec.token = 0; rec.over = 0; rec.dead_id = d;
     forget_undo();
     if :: unsure -> rec.unknowns++; rec.ever = 1 :: else fi;
     if :: kn -> outcome_known() :: else fi
  :: else -> refuse()
  fi
}

inline store_release(tok) {
  if
  :: HOLDER(tok) && rec.undo == undo_restore ->
     verdict = applied;
#ifdef RELEASE_DELETES
     clear_record(rec);
#else
     copy_record(rec, previous);
#endif
     clear_record(previous)
  :: HOLDER(tok) && rec.undo == undo_delete -> verdict = applied; clear_record(rec)
  :: else -> refuse()
  fi
}

inline store_succeed() {
  clear_record(rec);
  clear_record(previous);
  rec.state = done;
  recorded = 1
}

inline store_undead(d) {
  if
  :: rec.state == dead && !rec.ever && rec.dead_id == d -> clear_record(rec)
  :: else
  fi
}
