package proxy

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rabbitonce/dedup"
)

const (
	// recordBytes is what a record takes up, as docs/stores.md measured it, rounded up.
	recordBytes = 200
	// slowTrip is a round trip that every message pays twice or more.
	slowTrip = 20 * time.Millisecond
	// farClock is a difference of clocks that makes times in letters and in `inspect` odd. Nothing else depends on ours.
	farClock = time.Minute
)

// checkStore looks at the store's servers and whether they take claims.
func checkStore(ctx context.Context, cfg *Config, rate float64) []finding {
	const subject = about("store")
	if len(cfg.Dedup.Validate()) > 0 {
		return []finding{subject.info("not looked at: the configuration is wrong")}
	}
	store, err := openStore(cfg.Dedup, func() (*Config, error) { return cfg, nil })
	if err != nil {
		return []finding{subject.failed(err)}
	}
	defer func() { _ = store.Close() }()
	if cfg.Dedup.Store == dedup.StoreMemory {
		return []finding{subject.warn(strings.Join(store.Advise(ctx), "; "), "")}
	}
	all := []finding{subject.ok("takes claims and successes")}
	if err := store.Probe(ctx, probeKey(cfg)); err != nil {
		all[0] = subject.failed(err)
	}
	servers, err := store.Examine(ctx)
	if err != nil && all[0].Level == levelOK {
		all = append(all, subject.failed(err))
	}
	for _, s := range servers {
		if s.RoundTrip > 0 {
			all = append(all, adviseServer(about("store "+s.Address), s, cfg.Dedup)...)
		}
	}
	return append(all, forecast(cfg, servers, rate)...)
}

// adviseServer says what one server told, and what could cost something.
func adviseServer(subject about, s dedup.Server, cfg dedup.Config) []finding {
	all := []finding{subject.ok("%s", describeServer(s))}
	warn := func(message, remedy string) { all = append(all, subject.warn(message, remedy)) }
	if s.RoundTrip > slowTrip {
		warn(fmt.Sprintf("a round trip takes %v, and each message waits for two", s.RoundTrip.Round(time.Millisecond)), "use a store that is nearer")
	}
	if s.Ahead.Abs() > farClock {
		warn(fmt.Sprintf("its clock and ours differ by %v", s.Ahead.Abs().Round(time.Second)), "set the clocks; claims go by the store's alone, but times in dead letters and logs do not fit together")
	}
	if !s.Told {
		return append(all, subject.info("version, role, persistence and memory are told only to a user with +info"))
	}
	if old, known := olderThan(s, 6, 2); known && old {
		all = append(all, subject.fail("the server is too old", "Redis 6.2 or Valkey 8, or later"))
	}
	if s.Role != "master" {
		all = append(all, subject.fail("the server is a replica", "point REDIS_URL at the primary, or at the sentinels with REDIS_SENTINEL_MASTER"))
	}
	if s.Eviction != "noeviction" {
		warn("maxmemory-policy "+s.Eviction+": when its memory is full the server drops records, and their messages are executed again", "set maxmemory-policy noeviction")
	}
	if !s.AppendOnly {
		warn("a crash of the server forgets records, and their messages are executed again when a copy comes", "set appendonly yes")
	}
	if s.SavingFailed {
		warn("its last attempt to save failed", "see the server's log")
	}
	if s.Replicas < cfg.WaitReplicas {
		all = append(all, subject.fail(fmt.Sprintf("%d replica(s) are connected, and DEDUP_WAIT_REPLICAS=%d", s.Replicas, cfg.WaitReplicas), "no success can be recorded: add replicas or lower it"))
	}
	return all
}

func describeServer(s dedup.Server) string {
	text := fmt.Sprintf("round trip %v", s.RoundTrip.Round(10*time.Microsecond))
	if !s.Told {
		return text
	}
	limit := "no limit"
	if s.MaxMemory > 0 {
		limit = "of " + megabytes(s.MaxMemory)
	}
	return fmt.Sprintf("%s %s, %s, %d replica(s), %s, memory %s, %s", s.Product, s.Version, s.Role, s.Replicas, text, megabytes(s.UsedMemory), limit)
}

// olderThan compares the version; known is false when it cannot be read.
func olderThan(s dedup.Server, major, minor int) (old, known bool) {
	first, rest, _ := strings.Cut(s.Version, ".")
	second, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(first)
	if err != nil {
		return false, false
	}
	b, err := strconv.Atoi(second)
	return a < major || a == major && b < minor, err == nil
}

// forecast says how much memory records will take at a rate, and whether there is as much.
func forecast(cfg *Config, servers []dedup.Server, rate float64) []finding {
	const subject = about("store memory")
	var longest time.Duration
	for _, q := range cfg.Queues {
		longest = max(longest, q.Dedup.Retention)
	}
	if rate == 0 || longest == 0 {
		return nil
	}
	need := int64(rate * longest.Seconds() * recordBytes)
	text := fmt.Sprintf("%s a second x DEDUP_RETENTION %s x %d bytes a record = %s", strconv.FormatFloat(rate, 'g', -1, 64), shortDuration(longest), recordBytes, megabytes(need))
	var room int64
	for _, s := range servers {
		if s.MaxMemory == 0 {
			return []finding{subject.info("%s", text)}
		}
		room += s.MaxMemory
	}
	if need > room && len(servers) > 0 {
		return []finding{subject.warn(text+", and maxmemory is "+megabytes(room), "raise it (and a quarter more than the forecast), or shorten DEDUP_RETENTION; a full server takes no claims")}
	}
	return []finding{subject.info("%s", text)}
}

func megabytes(n int64) string {
	const mb = 1_000_000
	if n < 10*mb {
		return fmt.Sprintf("%.1f MB", float64(n)/mb)
	}
	return fmt.Sprintf("%d MB", n/mb)
}
