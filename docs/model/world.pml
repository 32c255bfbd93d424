/* What happens around the replicas: time, the service, requests that come late, the operator. */

#ifdef NO_TOKEN /* a caller that does not recognise its claim does not renew it */
#define RENEWS(x) (r[x].token == rec.token && r[x].pc != claiming)
#else
#define RENEWS(x) (r[x].token == rec.token)
#endif
#if REPLICAS == 3
#define NOBODY_RENEWS (!RENEWS(0) && !RENEWS(1) && !RENEWS(2))
#else
#define NOBODY_RENEWS (!RENEWS(0) && !RENEWS(1))
#endif

#define HEARS(x) (r[x].pc == posting && r[x].token == work)
#if REPLICAS == 3
#define NOBODY_HEARS (!HEARS(0) && !HEARS(1) && !HEARS(2))
#else
#define NOBODY_HEARS (!HEARS(0) && !HEARS(1))
#endif

inline put_back(name) {
  redrives--;
  if
  :: delivery[0].at == gone -> i = 0
  :: delivery[1].at == gone -> i = 1
#if SLOTS == 3
  :: delivery[2].at == gone -> i = 2
#endif
  fi;
  delivery[i].at = ready;
  if
  :: delivery[i].header = name
  :: true /* a tool that drops the headers */
  fi;
  if
  :: letter[name] = 0
  :: true /* there were two: letters are at least once */
  fi;
#ifdef FREE_REDRIVE
  clear_record(rec);
  clear_record(previous);
#endif
  printf("operator: puts a letter back, dead-id %d\n", delivery[i].header)
}

#define MAY_PUT_BACK(d) (redrives > 0 && letter[d] && ANY_AT(gone))

proctype world() {
end:
  do
  :: atomic { MAY_RUN_OUT && NOBODY_RENEWS -> rec.over = 1; printf("time: lease and deadline pass\n") }
  :: atomic { rec.state == waiting && !rec.over && work != rec.token -> rec.over = 1; printf("time: the pause is over\n") }
  :: atomic { rec.state == dead && !rec.over && work != rec.token -> rec.over = 1; rec.token = 0; printf("time: the deadline of what is dead passes\n") }
  :: atomic { work != 0 && NOBODY_HEARS -> work = 0; printf("service: ends a request that nobody hears of\n") }
#ifdef LOOKUP
  :: atomic { work != 0 && NOBODY_HEARS -> work = 0; WORK_IS_DONE(); printf("service: does the work of a request that nobody hears of\n") }
#endif
  :: atomic { wire.word != nothing ->
       if
       :: wire.word == op_claim -> printf("wire: a late claim acts\n"); store_claim(wire.token, wire.dead_id)
       :: wire.word == op_wait -> printf("wire: a late wait acts\n"); store_wait(wire.token, wire.class)
       :: wire.word == op_bury -> printf("wire: a late bury acts\n"); store_bury(wire.token, wire.dead_id, wire.uncertain, wire.known)
       :: wire.word == op_release -> printf("wire: a late release acts\n"); store_release(wire.token)
       :: wire.word == op_clear -> printf("wire: a late clear acts\n"); store_clear(wire.token)
       fi;
       wire.word = nothing; wire.token = 0; wire.dead_id = 0; wire.class = nothing; wire.uncertain = 0; wire.known = 0 }
  :: atomic { MAY_PUT_BACK(1) -> put_back(1) }
  :: atomic { MAY_PUT_BACK(2) -> put_back(2) }
  :: atomic { MAY_PUT_BACK(3) -> put_back(3) }
  :: atomic { MAY_PUT_BACK(4) -> put_back(4) }
  :: atomic { MAY_PUT_BACK(5) -> put_back(5) }
  od
}

init {
  atomic {
    clear_record(rec);
    clear_record(previous);
    wire.word = nothing; wire.class = nothing;
    i = 0;
    do
    :: i < SLOTS ->
       if
       :: i < COPIES -> delivery[i].at = ready
       :: else -> delivery[i].at = gone
       fi;
       i++
    :: else -> break
    od;
    i = 0;
    do
    :: i < REPLICAS -> r[i].pc = idle; r[i].class = nothing; i++
    :: else -> break
    od;
    run replica(0);
    run replica(1);
#if REPLICAS == 3
    run replica(2);
#endif
    run world()
  }
  atomic { timeout -> check_settled() }
}
