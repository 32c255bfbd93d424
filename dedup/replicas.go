package dedup

import "fmt"

// anyToConfirm tells whether replicas have to be waited for. Only a success is
// worth it: what is lost of a claim is found out by its holder, and costs a
// lease that is lost.
func anyToConfirm(group []*call) bool {
	for _, c := range group {
		if c.op.confirm {
			return true
		}
	}
	return false
}

// confirm turns answers into errors when fewer replicas than wanted have what
// was written. The primary has it all the same: the caller repeats, which
// writes and asks again.
func confirm(group []*call, wanted, have int, err error) {
	switch {
	case err != nil:
		err = fmt.Errorf("the primary has it, but whether DEDUP_WAIT_REPLICAS have it is not known: %w", explain(err))
	case have < wanted:
		err = fmt.Errorf("the primary has it, but only %d of DEDUP_WAIT_REPLICAS=%d replicas have it in time: are they up, and connected to the primary?", have, wanted)
	default:
		return
	}
	for _, c := range group {
		if c.op.confirm && c.err == nil {
			c.err = err
		}
	}
}
