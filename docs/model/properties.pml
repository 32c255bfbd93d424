/*
 * What must hold. A violation prints the property's name when its trace is replayed. All are checked together, or one
 * alone (-DONLY=name), so that a variant shows the property that it breaks and not another that breaks sooner.
 *
 *   no_loss          a delivery leaves its queue only after an answer "done" or its letter
 *   one_at_a_time    the service never works on two requests at once
 *   after_success    no POST after a recorded success
 *   claim_after_ack  no claim granted after an acked success
 *   flagged          no unflagged POST after one whose outcome is not recorded as known
 *   second_unknown   deadletter: no POST after one whose outcome is not recorded as known, unless an operator opened the record
 *   once_only        lookup: no POST after the work was done
 *   letter_final     no POST between a letter and the ack of its delivery, unless the letter was put back
 *   not_blamed       a lost reply alone makes no outcome unknown
 *   settles          once faults end every delivery is settled, and the work is done or its letter is there
 *   enough_dead_ids  of the model itself: its bound was not met
 */
mtype = { everything, no_loss, one_at_a_time, after_success, claim_after_ack, flagged, second_unknown, once_only, letter_final, not_blamed,
          settles, enough_dead_ids };

#ifndef ONLY
#define ONLY everything
#endif
#define HOLDS(name, condition) \
  if \
  :: (ONLY == everything || ONLY == name) && !(condition) -> \
     printf("VIOLATED "); printf(#name); printf("\n"); \
     assert(false) \
  :: else \
  fi

#ifdef STRICT_SUCCESS
#define SUCCESS_RESPECTED (!recorded)
#else
/* A claim that was granted before another holder's late success still POSTs; it is flagged. */
#define SUCCESS_RESPECTED (!recorded || (my.early && my.flag))
#endif

#define FAULTLESS (crashes == CRASHES && stops == STOPS && sessions == SESSIONS && late == LATE)

#ifdef LOOKUP
#define NOT_DONE_YET (!worked)
#else
#define NOT_DONE_YET true
#endif

#define LETTER_OPEN(d) (published[d] && !closed[d])
#define NO_LETTER_OPEN (!LETTER_OPEN(1) && !LETTER_OPEN(2) && !LETTER_OPEN(3) && !LETTER_OPEN(4) && !LETTER_OPEN(5))
#define LETTER_THERE (letter[1] || letter[2] || letter[3] || letter[4] || letter[5])

inline check_post() {
  HOLDS(one_at_a_time, work == 0);
  HOLDS(after_success, SUCCESS_RESPECTED);
  HOLDS(flagged, my.flag || open_posts == 0);
  HOLDS(second_unknown, !NEVER_REPEAT_UNKNOWN || open_since == 0);
  HOLDS(once_only, NOT_DONE_YET);
  HOLDS(letter_final, NO_LETTER_OPEN)
}

inline check_settled() {
  HOLDS(settles, ALL_GONE && (answered_done || LETTER_THERE))
}
