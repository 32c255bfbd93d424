package dedup

import "strings"

// remedy returns what an operator can do about an error of the Redis server,
// or "" when that is not obvious. The codes are the first word of the server's
// answer; the client library may put words of its own before them.
func remedy(text string) string {
	const wantsPassword = "the server wants a password: set REDIS_PASSWORD"
	for _, known := range []struct{ code, advice string }{
		{"WRONGPASS", "check REDIS_USERNAME and REDIS_PASSWORD, or the user and password in REDIS_URL"},
		{"NOAUTH", wantsPassword},
		{"ERR Protocol error: unauthenticated", wantsPassword}, // a long command without a login
		{"NOPERM", "the user may not do this: allow it +evalsha +eval +get +set +del +time +ping on the keys that begin with DEDUP_PREFIX"},
		{"READONLY", "this is a replica: point REDIS_URL at the primary"},
		{"LOADING", "the server is starting: it answers when its data is loaded"},
		{"OOM", "the server is out of memory: raise maxmemory or shorten DEDUP_RETENTION"},
		{"MISCONF", "the server cannot save its data and refuses writes: see its log"},
		{"NOREPLICAS", "too few replicas are in step for the server's min-replicas-to-write"},
		{"CLUSTERDOWN", "the cluster does not serve all slots"},
		{"MOVED", "this server is part of a cluster, which this version does not speak to"},
		{"WRONGTYPE", "the key belongs to another program: use a DEDUP_PREFIX of its own"},
	} {
		if strings.Contains(text, known.code+" ") {
			return known.advice
		}
	}
	return ""
}
