// Package dedup is the claim store: it decides, for every message ID, who may
// work on it now, and remembers what came of it.
//
// # What it keeps
//
// One key a (consumer, message ID) with one small binary value, the record
// (record.go, codec.go). A record is processing, waiting, done or dead; beside
// that it always holds the attempts, the deferrals, the unknown outcomes,
// whether any outcome was ever unknown, when the ID was first claimed, and a
// fingerprint of the payload. No key is ever without an expiry.
//
// # The protocol
//
// Eight operations change records: claim, renew, succeed, wait, bury, release,
// undead and, for an operator, forget. Each is one atomic step on one key, by
// the store's own clock.
// They exist twice: as scripts/protocol.lua, which Redis runs, and as the pure
// function decide in protocol.go, which the memory store runs. One conformance
// suite and one model-based test hold the two together. The rules, and why
// each is there, are written beside the code in scripts/protocol.lua.
//
// A claim carries a [Token] that is unique for ever and shared only by the
// repeats of that claim, so that a claim whose reply was lost is recognised as
// its own when it is repeated. An error is therefore never a verdict: repeat
// the call with the same token.
//
// # Life cycle and goroutines
//
// [New] opens nothing. Operations may be called at once and connect when they
// must. [Store.Run] keeps leases renewed until its context ends, then closes
// the store. A program that makes a few calls and never holds a lease needs no
// Run, but calls [Store.Close].
//
//   - Run's own goroutine is the keeper: it alone decides when a lease is
//     renewed and when it counts as lost (keeper.go).
//   - The committer starts one goroutine for each group of operations in
//     flight, at most three, which stay a while for the next; Close waits for
//     them (group.go). In a cluster each of them starts one for each node that
//     its group goes to, and waits for those (redis_run.go).
//
// # Guarantees
//
//   - While a [Lease] has time left, by the local monotonic clock and counted
//     from when the claim or renewal was sent, no other claim on the same
//     record is granted.
//   - After Succeed returned nil, no claim on the ID is granted until the
//     record expires.
//   - The operations of one key may run in any order when they are called
//     concurrently; called one after another they keep their order, except
//     that a call which returned an error may still take effect later.
//
// They rest on a store that loses no acknowledged write and whose clock does
// not jump forward by more than the leases have to spare. A fail-over may lose
// writes: DEDUP_WAIT_REPLICAS keeps it from losing successes (replicas.go).
package dedup
