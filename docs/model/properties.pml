/*
 * What must hold. A violation prints the property's name when its trace is replayed. All are checked together, or one
 * alone (ONLY=number), so that a variant shows the property that it breaks and not another that breaks sooner.
 */
#define no_loss 1         /* a delivery leaves its queue only after an answer "done" or its letter */
#define one_at_a_time 2   /* the service never works on two requests at once */
#define after_success 3   /* no POST after a recorded success */
#define claim_after_ack 4 /* no claim granted after an acked success */
#define flagged 5         /* no unflagged POST after one whose outcome is not known */
#define second_unknown 6  /* deadletter: no POST after one whose outcome is not known, unless an operator opened the record */
#define letter_final 7    /* no POST between a letter and the ack of its delivery, unless the letter was put back */
#define not_blamed 8      /* a lost reply alone makes no outcome unknown */
#define settles 9         /* once faults end every delivery is settled, its work done or its letter there */
#define enough_dead_ids 10 /* of the model itself: no bound was met */

#ifndef ONLY
#define ONLY 0
#endif
#define HOLDS(name, condition) \
  if \
  :: (ONLY == 0 || ONLY == name) && !(condition) -> printf("VIOLATED " #name "\n"); assert(false) \
  :: else \
  fi

#ifdef STRICT_SUCCESS
#define SUCCESS_RESPECTED (!recorded)
#else
/* A claim that was granted before another holder's late success still POSTs; it is flagged. */
#define SUCCESS_RESPECTED (!recorded || (my.early && my.flag))
#endif

#define FAULTLESS (crashes == CRASHES && stops == STOPS && sessions == SESSIONS && late == LATE)

#define LETTER_OPEN(d) (published[d] && !closed[d])
#define NO_LETTER_OPEN (!LETTER_OPEN(1) && !LETTER_OPEN(2) && !LETTER_OPEN(3) && !LETTER_OPEN(4) && !LETTER_OPEN(5))
#define LETTER_THERE (letter[1] || letter[2] || letter[3] || letter[4] || letter[5])

inline check_post() {
  HOLDS(one_at_a_time, work == 0);
  HOLDS(after_success, SUCCESS_RESPECTED);
  HOLDS(flagged, my.flag || open_posts == 0);
  HOLDS(second_unknown, !NEVER_REPEAT_UNKNOWN || open_since == 0);
  HOLDS(letter_final, NO_LETTER_OPEN)
}

inline check_settled() {
  HOLDS(settles, ALL_GONE && (answered_done || LETTER_THERE))
}
