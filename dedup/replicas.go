package dedup

import "fmt"

// anySuccess tells whether replicas have to be waited for. Only a success is
// worth it: what is lost of a claim is found out by its holder, and costs a
// request that is flagged or a lease that is lost.
func anySuccess(group []*call) bool {
	for _, c := range group {
		if c.op.word == wordSucceed {
			return true
		}
	}
	return false
}

// confirm turns the successes of a group into errors when fewer replicas than
// wanted have them. They are recorded all the same, on the primary: the caller
// repeats, which records and asks again.
func confirm(group []*call, wanted, have int, err error) {
	switch {
	case err != nil:
		err = fmt.Errorf("recorded, but whether DEDUP_WAIT_REPLICAS have it is not known: %w", explain(err))
	case have < wanted:
		err = fmt.Errorf("recorded, but only %d of DEDUP_WAIT_REPLICAS=%d replicas have it in time: are they up, and connected to the primary?", have, wanted)
	default:
		return
	}
	for _, c := range group {
		if c.op.word == wordSucceed && c.err == nil {
			c.err = err
		}
	}
}
