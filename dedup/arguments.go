package dedup

// arguments returns a whole command: a key for each operation, and ARGV as
// scripts/protocol.lua lists it.
func arguments(command, script string, group []*call) []any {
	const usual = 10 // words an operation, its key and their count included
	args := append(make([]any, 0, 3+usual*len(group)), command, script, len(group))
	for _, c := range group {
		args = append(args, c.op.key)
	}
	for _, c := range group {
		at := len(args)
		args = appendWords(append(args, 0), &c.op)
		args[at] = len(args) - at - 1
	}
	return args
}

// appendWords appends an operation's name and what belongs to it.
func appendWords(args []any, op *operation) []any {
	args = append(args, string(op.word))
	switch op.word {
	case wordClaim:
		var id string
		if op.hasDeadID {
			id = string(op.deadID[:])
		}
		return append(args, op.token[:], op.fingerprint.bytes(), flag(op.compare), op.lease, op.deadline, op.retention, id)
	case wordRenew:
		return append(args, op.token[:], op.lease, op.retention)
	case wordSucceed:
		return append(args, op.status, op.fingerprint.bytes(), op.retention)
	case wordWait:
		return append(args, op.token[:], op.delay, op.class.String(), op.retention)
	case wordBury:
		return append(args, op.token[:], uint8(op.reason), op.deadID[:], flag(op.unknown), op.retention)
	case wordRelease, wordClear:
		return append(args, op.token[:], op.retention)
	case wordForget:
		return append(args, op.expected)
	default: // wordUndead
		return append(args, op.deadID[:])
	}
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}
