package proxy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ourPrefixes are how variables of this program begin; a name that begins so and is none of ours is probably misspelt.
var ourPrefixes = []string{
	"RABBITONCE_", "RABBITMQ_", "REDIS_", "DEDUP_", "FORWARD_", "RETRY_", "DEADLETTER_", "HEALTH_", "SHUTDOWN_", "QUEUE_", "ADMIN_", "READY_",
}

// notYet are variables of the contract that this version does not know, with the value that means "off". Set to
// anything else they are refused: a setting that somebody relies on must not be ignored in silence.
var notYet = map[string]string{
	"READY_REQUIRES": "none", "HEALTH_DRAIN": "false",
	"ADMIN_ADDR": "", "ADMIN_TOKEN": "",
}

// strayVariables looks at the names that nothing asked for: a warning for a name that is probably misspelt, a problem
// for one that this version cannot honour.
func strayVariables(vars map[string]string, queuePrefixes map[string]string) (warnings, problems []string) {
	known := map[string]bool{}
	for _, v := range processVariables() {
		known[v.name] = true
	}
	perQueue := map[string]bool{}
	for _, v := range queueVariables() {
		known[v.name], perQueue[v.name] = true, true
	}
	prefixes := slices.SortedFunc(maps.Keys(queuePrefixes), func(a, b string) int { return len(b) - len(a) })
	for _, name := range sortedKeys(vars) {
		plain := strings.TrimPrefix(name, "RABBITONCE_")
		inQueue := false
		for _, prefix := range prefixes { // the longer of two that fit is the queue's own
			if rest, ok := strings.CutPrefix(plain, prefix); ok {
				plain, inQueue = rest, true
				break
			}
		}
		base := strings.TrimSuffix(plain, "_FILE")
		off, later := notYet[plain]
		if !later {
			_, later = notYet[base] // its file
		}
		switch {
		case inQueue && (perQueue[plain] || perQueue[base]), !inQueue && (known[plain] || known[base]):
		case later && vars[name] != off:
			problems = append(problems, fmt.Sprintf("%s: is not supported by this version yet; unset it%s", name, orDefault(off)))
		case later:
		case inQueue && known[plain]:
			problems = append(problems, fmt.Sprintf("%s: %s holds for the whole process and cannot be set for one queue", name, plain))
		case isOurs(name) && !injectedByKubernetes(name):
			warnings = append(warnings, fmt.Sprintf("%s is not a variable of this program%s", name, guess(plain, known)))
		}
	}
	return warnings, problems
}

// guess names the variable that was probably meant.
func guess(name string, known map[string]bool) string {
	best, least := "", 3
	for other := range known {
		if d := distance(name, other); d < least || d == least && other < best {
			best, least = other, d
		}
	}
	if best == "" {
		return ": misspelt, or a queue that QUEUES does not list?"
	}
	return ": is " + best + " meant?"
}

// distance counts the letters to insert, delete or replace to get from a to b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, corner+cost)
		}
	}
	return row[len(b)]
}

func orDefault(off string) string {
	if off == "" {
		return ""
	}
	return " or set it to " + off
}

func isOurs(name string) bool {
	return slices.ContainsFunc(ourPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// injectedByKubernetes tells the variables that the kubelet makes for each Service of the namespace, such as
// REDIS_SERVICE_HOST and RABBITMQ_PORT_5672_TCP
// (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
func injectedByKubernetes(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
