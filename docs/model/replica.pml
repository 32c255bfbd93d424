/* A replica: the life of one delivery after another, as proxy/pipeline.go has it. Each option of the loop is one step,
 * and between any two the process can be killed, stopped, or lose its session. */

#define my r[_pid]
#define DELIVERY delivery[my.mine]

inline forget_all(x) {
  x.pc = idle; x.mine = 0; x.session = 0; x.token = 0; x.fresh = 0; x.flag = 0; x.attempts = 0; x.unknowns = 0;
  x.class = 0; x.uncertain = 0; x.known = 0; x.dead_id = 0; x.keep = 0; x.paid = 0; x.early = 0
}

inline claim_anew() { /* again(...) of a turn; without a session the delivery is somebody else's by now */
  i = my.mine;
  if
  :: my.session ->
#ifdef TOKEN_PER_DELIVERY
     byte same = my.token;
     forget_all(my);
     my.mine = i; my.session = 1; my.token = same; same = 0;
#else
     forget_all(my);
     my.mine = i; my.session = 1;
     new_token(my.token);
#endif
     my.pc = claiming
  :: else -> forget_all(my)
  fi
}

inline ask_again() { my.token = my.token } /* nothing was heard: the same step once more */

inline send_late(op) {
  late--;
  wire.word = op; wire.token = my.token; wire.dead_id = my.dead_id; wire.class = my.class;
  wire.uncertain = my.uncertain; wire.known = my.known;
  printf("%d: no answer; the request stays on the wire\n", _pid)
}

inline must_die(unsure, kn) { /* bury */
  my.uncertain = unsure; my.known = kn; my.keep = (my.flag || unsure);
  my.class = 0; my.fresh = 0;
  new_dead_id(my.dead_id);
#ifdef LETTER_FIRST
  my.early = 1; /* here: "dead" is still to be written */
  my.pc = publishing
#else
  my.pc = burying
#endif
}

inline may_post() { /* decideGranted */
  if
  :: my.unknowns > 0 && NEVER_REPEAT_UNKNOWN || my.unknowns > UNKNOWN_MAX ->
     HOLDS(not_blamed, posted || !FAULTLESS);
     must_die(0, 0)
  :: else ->
     if
     :: my.attempts > MAX_ATTEMPTS -> must_die(0, 0)
     :: else -> my.pc = posting_next
     fi
  fi
}

inline act_on_claim() { /* decideClaim */
  if
  :: verdict == claimed ->
     my.fresh = 1; my.flag = rec.ever; my.attempts = rec.attempts; my.unknowns = rec.unknowns; my.early = !recorded;
     printf("%d: claimed, attempt %d, unknown %d\n", _pid, my.attempts, my.flag);
     if
     :: my.session -> may_post()
     :: else -> my.pc = releasing
     fi
  :: verdict == found_done -> printf("%d: finds done\n", _pid); my.token = 0; my.pc = acking
  :: verdict == found_dead ->
     printf("%d: finds dead\n", _pid);
     my.token = 0; my.dead_id = rec.dead_id; my.keep = rec.ever; my.pc = publishing
  fi
}

inline act_on_result(next) { /* notApplied */
  if
  :: verdict == applied -> next
  :: verdict == found_done -> printf("%d: its result is dropped: done\n", _pid); my.token = 0; my.pc = acking
  :: verdict == not_ours -> printf("%d: its result is dropped: not its own\n", _pid); claim_anew()
  fi
}

inline act_on_failure(cls) { /* decideOutcome: fail, defer */
  if
  :: cls == failed && r[who].attempts >= MAX_ATTEMPTS -> r[who].uncertain = 0; r[who].known = 1; r[who].pc = burying
  :: else -> r[who].class = cls; r[who].pc = retrying
  fi
}

#define HEARD 1

active [REPLICAS] proctype replica() {
end:
  do
  :: atomic { my.pc == idle ->
       if
       :: delivery[0].at == ready -> i = 0
       :: delivery[1].at == ready -> i = 1
#if SLOTS == 3
       :: delivery[2].at == ready -> i = 2
#endif
       fi;
       printf("%d: receives delivery %d\n", _pid, i);
       my.mine = i; DELIVERY.at = unacked; my.session = 1;
       new_token(my.token);
       my.pc = claiming
     }

  :: atomic { my.pc == claiming && ANSWERS(my.token) && my.session ->
       if
       :: store_claim(my.token, DELIVERY.header); act_on_claim()
       :: lost > 0 && (rec.state != done && rec.state != dead || DELIVERY.header) ->
          lost--;
          store_claim(my.token, DELIVERY.header);
          printf("%d: its claim acted, the reply is lost\n", _pid)
       :: late > 0 && wire.word == nothing -> send_late(op_claim); wire.dead_id = DELIVERY.header
       fi
     }
  :: atomic { my.pc == claiming && !my.session -> /* abandon: one try */
       if
       :: store_release(my.token)
       :: true
       fi;
       printf("%d: gives up, its session ended\n", _pid);
       forget_all(my)
     }

#ifdef NO_LEASE_CHECK
#define MAY_BEGIN true
#else
#define MAY_BEGIN my.fresh
#endif
  :: atomic { my.pc == posting_next && MAY_BEGIN ->
       if
       :: check_post();
          printf("%d: POST begins, flagged %d\n", _pid, my.flag);
          posted = 1; open_posts++; open_since++;
          work = my.token;
          my.pc = posting
       :: unreachable > 0 -> unreachable--; printf("%d: the service refuses the connection\n", _pid); my.pc = releasing
       fi
     }
  :: atomic { my.pc == posting_next && !MAY_BEGIN -> printf("%d: too late to POST, claims again\n", _pid); my.pc = claiming }

  :: atomic { my.pc == posting -> /* timeout, lost connection, 502, 504, lost lease: decideUnknown */
       printf("%d: outcome unknown\n", _pid);
       if
       :: NEVER_REPEAT_UNKNOWN || my.unknowns + 1 > UNKNOWN_MAX || my.attempts >= MAX_ATTEMPTS -> must_die(1, 0)
       :: else -> my.class = unknown; my.pc = retrying
       fi
     }

  :: atomic { my.pc == succeeding -> /* recordSuccess */
       if
       :: store_succeed(); printf("%d: success recorded\n", _pid);
          if :: my.paid -> forget_all(my) :: else -> my.token = 0; my.fresh = 0; my.pc = acking fi
       :: lost > 0 && rec.state != done -> lost--; store_succeed(); printf("%d: success recorded, the reply is lost\n", _pid)
       :: outages > 0 && !my.fresh && !my.paid ->
          outages--;
          printf("%d: cannot record its success, acks all the same\n", _pid);
          my.paid = 1;
          if
          :: my.session -> HOLDS(no_loss, answered_done); DELIVERY.at = gone; my.session = 0; acked_success = 1; excused = 1
          :: else
          fi
       fi
     }

  :: atomic { my.pc == retrying ->
       if
       :: store_wait(my.token, my.class); act_on_result(printf("%d: waits\n", _pid); claim_anew())
       :: lost > 0 && HOLDER(my.token) -> lost--; store_wait(my.token, my.class); printf("%d: waits, the reply is lost\n", _pid)
       :: late > 0 && wire.word == nothing -> send_late(op_wait)
       fi
     }

  :: atomic { my.pc == burying ->
       if
       :: store_bury(my.token, my.dead_id, my.uncertain, my.known);
          printf("%d: writes dead\n", _pid);
          my.pc = publishing
       fi
     }
  od
}
