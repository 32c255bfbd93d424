/* A replica: the life of one delivery after another, as proxy/pipeline.go has it. Each option of the loop is one step,
 * and between any two the process can be killed, stopped, or lose its session. */

inline new_token(where) {
  i = 1;
  do
  :: TOKEN_USED(i) -> i++
  :: else -> break
  od;
  where = i
}

inline new_dead_id(where) {
  i = 1;
  do
  :: i < DEAD_IDS && DEAD_ID_USED(i) -> i++
  :: else -> break
  od;
  HOLDS(enough_dead_ids, i < DEAD_IDS);
  where = i;
  published[i] = 0;
  closed[i] = 0
}

inline forget_all() {
  my.pc = idle; my.mine = 0; my.session = 0; my.token = 0; my.fresh = 0; my.flag = 0; my.attempts = 0; my.unknowns = 0;
  my.class = nothing; my.uncertain = 0; my.known = 0; my.dead_id = 0; my.keep = 0; my.paid = 0; my.early = 0;
#ifdef LETTER_FIRST
  my.unburied = 0
#else
  skip
#endif
}

inline claim_anew() { /* again(...) of a turn; without a session the delivery is another's by now */
  if
  :: my.session ->
     hand = my.mine; mark = my.token;
     forget_all();
     my.mine = hand; my.session = 1; my.pc = claiming;
#ifdef TOKEN_PER_DELIVERY
     my.token = mark
#else
     new_token(my.token)
#endif
  :: else -> forget_all()
  fi
}

inline must_die(unsure, is_known) { /* bury, as far as it decides */
  my.uncertain = unsure; my.known = is_known; my.keep = (my.flag || unsure);
  new_dead_id(my.dead_id);
#ifdef LETTER_FIRST
  my.unburied = 1;
  my.pc = publishing
#else
  my.pc = burying
#endif
}

inline decide_granted() {
#ifdef LOOKUP
  if
  :: my.flag -> my.pc = looking
  :: !my.flag && my.attempts > MAX_ATTEMPTS -> must_die(0, 0)
  :: else -> my.pc = about_to_post
  fi
#else
  if
  :: (my.unknowns > 0 && NEVER_REPEAT_UNKNOWN) || my.unknowns > UNKNOWN_MAX ->
     HOLDS(not_blamed, posted || !FAULTLESS);
     must_die(0, 0)
  :: else ->
     if
     :: my.attempts > MAX_ATTEMPTS -> must_die(0, 0)
     :: else -> my.pc = about_to_post
     fi
  fi
#endif
}

#ifdef LOOKUP_BLIND /* a service that knows finished work only */
#define SAYS_NOT_DONE (!worked)
#else
#define SAYS_NOT_DONE (!worked && work == 0)
#endif

inline decide_claim() {
  if
  :: verdict == claimed ->
     my.fresh = 1; my.flag = rec.ever; my.attempts = rec.attempts; my.unknowns = rec.unknowns; my.early = !recorded;
     printf("%d: claims: attempt %d, unknown before %d\n", me, my.attempts, my.flag);
     decide_granted()
  :: verdict == found_done -> printf("%d: claims: finds done\n", me); my.token = 0; my.pc = acking
  :: verdict == found_dead ->
     printf("%d: claims: finds dead\n", me);
     my.token = 0; my.dead_id = rec.dead_id; my.keep = rec.ever; my.pc = publishing
  fi
}

inline result_dropped() { /* notApplied */
  if
  :: verdict == found_done -> printf("%d: its result is dropped, the record is done\n", me); my.token = 0; my.pc = acking
  :: verdict == not_ours -> printf("%d: its result is dropped, the record is not its own\n", me); claim_anew()
  fi
}

inline send_late(op, id) { /* no answer: the caller will repeat, and the request is still on its way */
  late--;
  wire.word = op; wire.token = my.token; wire.dead_id = id; wire.class = my.class;
  wire.uncertain = my.uncertain; wire.known = my.known;
  printf("%d: hears nothing of its request, which is still on its way\n", me)
}

inline after_burying() {
#if defined(LETTER_FIRST)
  my.unburied = 0;
  my.pc = acking_letter
#elif defined(ACK_BEFORE_LETTER)
  my.pc = acking_letter
#else
  my.pc = publishing
#endif
}

inline after_publishing() {
#ifdef LETTER_FIRST
  if
  :: my.unburied -> my.pc = burying
  :: else -> my.pc = acking_letter
  fi
#else
  my.pc = acking_letter
#endif
}

#define MAY_DELAY (late > 0 && wire.word == nothing)

#ifdef NO_LEASE_CHECK
#define MAY_BEGIN true
#else
#define MAY_BEGIN my.fresh
#endif

inline leaves_queue() { DELIVERY.at = gone; DELIVERY.header = 0 }

inline back_to_queue() { DELIVERY.at = ready; my.session = 0; sessions-- }

proctype replica(byte me) {
end:
  do
  :: atomic { my.pc == idle && ANY_AT(ready) ->
       if
       :: delivery[0].at == ready -> my.mine = 0
       :: delivery[1].at == ready -> my.mine = 1
#if SLOTS == 3
       :: delivery[2].at == ready -> my.mine = 2
#endif
       fi;
       printf("%d: receives delivery %d\n", me, my.mine);
       DELIVERY.at = unacked; my.session = 1;
       new_token(my.token);
       my.pc = claiming }

  :: atomic { my.pc == claiming && my.session && ANSWERS(my.token, DELIVERY.header) ->
       if
       :: store_claim(my.token, DELIVERY.header); decide_claim()
       :: lost > 0 && rec.state != done && !IS_DEAD_TO(DELIVERY.header) ->
          lost--;
          store_claim(my.token, DELIVERY.header);
          printf("%d: claims, and the reply is lost\n", me)
       :: MAY_DELAY -> send_late(op_claim, DELIVERY.header)
       fi }

  :: atomic { my.pc == claiming && !my.session -> /* abandon: of what may have been granted */
       if
       :: store_release(my.token)
       :: true
       fi;
       printf("%d: gives up the claim that it may have\n", me);
       forget_all() }

  :: atomic { my.pc == about_to_post && MAY_BEGIN -> /* the look at the lease and the first byte are one step */
       if
       :: printf("%d: POST begins, flagged %d\n", me, my.flag);
          check_post();
          posted = 1; open_posts++; open_since++;
          work = my.token;
          my.pc = posting
       :: unreachable > 0 ->
          unreachable--;
          printf("%d: the service refuses the connection\n", me);
          my.pc = releasing
       fi }
  :: atomic { my.pc == about_to_post && !MAY_BEGIN -> printf("%d: too late to POST, claims again\n", me); my.pc = claiming }

  /* decideOutcome */
  :: atomic { my.pc == posting && work == my.token ->
       work = 0;
       if
       :: printf("%d: the service answers done\n", me);
          answered_done = 1;
          WORK_IS_DONE();
#ifdef ACK_FIRST
          my.pc = acking
#else
          my.pc = succeeding
#endif
       :: printf("%d: the service answers reject\n", me); must_die(0, 1)
       :: my.attempts >= MAX_ATTEMPTS -> printf("%d: the service answers fail, the last time\n", me); must_die(0, 1)
       :: my.attempts < MAX_ATTEMPTS -> printf("%d: the service answers fail\n", me); my.class = failed; my.pc = retrying
       :: deferrals > 0 -> deferrals--; printf("%d: the service answers defer\n", me); my.class = deferred; my.pc = retrying
       fi }
  :: atomic { my.pc == posting -> /* timeout, lost connection, 502, 504, lost lease: the service may go on */
       printf("%d: outcome unknown\n", me);
#ifdef LOOKUP
       my.class = unknown; my.pc = retrying }
  :: atomic { my.pc == looking ->
       if
       :: worked -> printf("%d: looks up: done\n", me); answered_done = 1; my.pc = succeeding
       :: SAYS_NOT_DONE -> printf("%d: looks up: not done\n", me); my.pc = clearing_flag
       :: work != 0 -> printf("%d: looks up: in progress\n", me); my.pc = releasing
       :: unreachable > 0 -> unreachable--; printf("%d: looks up: no answer\n", me); my.pc = releasing
       fi }
  :: atomic { my.pc == clearing_flag -> /* then the same claim again */
       if
       :: store_clear(my.token);
          if
          :: verdict == applied -> printf("%d: writes that there was no work\n", me); my.pc = claiming
          :: else -> result_dropped()
          fi
       :: lost > 0 && HOLDER(my.token) -> lost--; store_clear(my.token); printf("%d: writes that there was no work, and the reply is lost\n", me); my.pc = releasing
       :: MAY_DELAY -> send_late(op_clear, 0); my.pc = releasing
       fi }
#else
       if
       :: NEVER_REPEAT_UNKNOWN || my.unknowns + 1 > UNKNOWN_MAX || my.attempts >= MAX_ATTEMPTS -> must_die(1, 0)
       :: else -> my.class = unknown; my.pc = retrying
       fi }
#endif

  :: atomic { my.pc == succeeding -> /* recordSuccess */
       if
       :: store_succeed();
          printf("%d: records the success\n", me);
          if
          :: my.paid -> forget_all()
          :: else -> my.token = 0; my.pc = acking
          fi
       :: lost > 0 && rec.state != done -> lost--; store_succeed(); printf("%d: records the success, and the reply is lost\n", me)
       :: outages > 0 && !my.fresh && !my.paid ->
          outages--;
          printf("%d: cannot record the success, and acks all the same\n", me);
          my.paid = 1;
          if
          :: my.session -> HOLDS(no_loss, answered_done); leaves_queue(); my.session = 0; acked_success = 1; excused = 1
          :: else
          fi
       fi }

  :: atomic { my.pc == retrying ->
       if
       :: store_wait(my.token, my.class);
          if
          :: verdict == applied -> printf("%d: writes waiting\n", me); claim_anew()
          :: else -> result_dropped()
          fi
       :: lost > 0 && HOLDER(my.token) -> lost--; store_wait(my.token, my.class); printf("%d: writes waiting, and the reply is lost\n", me)
       :: MAY_DELAY -> send_late(op_wait, 0)
       fi }

  :: atomic { my.pc == burying ->
       if
       :: store_bury(my.token, my.dead_id, my.uncertain, my.known);
          if
          :: verdict == applied -> printf("%d: writes dead\n", me); my.token = 0; after_burying()
          :: else -> result_dropped()
          fi
       :: lost > 0 && HOLDER(my.token) ->
          lost--;
          store_bury(my.token, my.dead_id, my.uncertain, my.known);
          printf("%d: writes dead, and the reply is lost\n", me)
       :: MAY_DELAY -> send_late(op_bury, my.dead_id)
       fi }

  :: atomic { my.pc == releasing ->
       if
       :: store_release(my.token); printf("%d: releases\n", me); claim_anew()
       :: lost > 0 && HOLDER(my.token) -> lost--; store_release(my.token); printf("%d: releases, and the reply is lost\n", me)
       :: MAY_DELAY -> send_late(op_release, 0)
       fi }

  :: atomic { my.pc == publishing -> /* publishLetter: repeated until confirmed, so that a lost confirm adds a second letter only */
       if
       :: printf("%d: the letter is confirmed\n", me);
          letter[my.dead_id] = 1; published[my.dead_id] = 1;
          after_publishing()
       :: !my.session -> printf("%d: gives up the letter, its session ended\n", me); forget_all()
       fi }

  :: atomic { my.pc == acking_letter ->
       if
       :: my.session ->
          HOLDS(no_loss, published[my.dead_id]);
          closed[my.dead_id] = 1;
          if
          :: printf("%d: acks, the letter is safe\n", me); leaves_queue(); my.session = 0
          :: sessions > 0 -> printf("%d: acks, and the ack is lost with the session\n", me); back_to_queue()
          fi;
          if
          :: my.keep -> forget_all()
          :: else -> my.pc = clearing
          fi
       :: else -> printf("%d: its ack is dropped, the session ended\n", me); forget_all()
       fi }

  :: atomic { my.pc == clearing -> /* clearDead: one try */
       if
       :: store_undead(my.dead_id); printf("%d: deletes the dead record\n", me)
       :: lost > 0 -> lost--; printf("%d: the dead record stays\n", me)
       fi;
       forget_all() }

  :: atomic { my.pc == acking ->
       if
       :: my.session ->
          HOLDS(no_loss, answered_done);
          if
          :: printf("%d: acks, the work is done\n", me); leaves_queue(); my.session = 0; acked_success = 1
          :: sessions > 0 -> printf("%d: acks, and the ack is lost with the session\n", me); back_to_queue()
          fi
       :: else -> printf("%d: its ack is dropped, the session ended\n", me)
       fi;
#ifdef ACK_FIRST
       if
       :: my.token -> my.paid = 1; my.pc = succeeding
       :: else -> forget_all()
       fi
#else
       forget_all()
#endif
     }

  /* faults */
  :: atomic { crashes > 0 && my.pc != idle ->
       crashes--;
       printf("%d: is killed\n", me);
       if
       :: my.session -> DELIVERY.at = ready
       :: else
       fi;
       forget_all() }
  :: atomic { sessions > 0 && my.session -> printf("%d: its session ends, the delivery goes back\n", me); back_to_queue() }
  :: atomic { MAY_RUN_OUT && stops > 0 && rec.token == my.token ->
       stops--;
       printf("%d: is stopped, its lease and deadline pass\n", me);
       my.fresh = 0; rec.over = 1 }
  od
}
