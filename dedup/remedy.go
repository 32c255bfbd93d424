package dedup

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// explain adds what to do about an error, where that is known.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if advice := remedy(err.Error()); advice != "" {
		return fmt.Errorf("%w (%s)", err, advice)
	}
	// Errors that say little to somebody who does not know what is behind them.
	var timeout net.Error
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("redis closed the connection: %w (if this lasts: is there TLS on that port, and does the server accept REDIS_TLS_CERT_FILE?)", err)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("redis did not answer in time: %w", err)
	}
	return err
}

// remedy returns what an operator can do about an error of the Redis server,
// or "" when that is not obvious. The codes are the first word of the server's
// answer; the client library may put words of its own before them.
func remedy(text string) string {
	const wantsPassword = "the server wants a password: set REDIS_PASSWORD"
	for _, known := range []struct{ code, advice string }{
		{"all sentinels specified in configuration are unreachable:", "no sentinel of REDIS_URL answers with a primary: check the hosts, REDIS_SENTINEL_MASTER, and REDIS_SENTINEL_PASSWORD"},
		{"WRONGPASS", "check REDIS_USERNAME and REDIS_PASSWORD, or the user and password in REDIS_URL"},
		{"NOAUTH", wantsPassword},
		{"ERR Protocol error: unauthenticated", wantsPassword}, // a long command without a login
		{"NOPERM", "the user may not do this: allow it +evalsha +eval +get +set +del +time +ping, with DEDUP_WAIT_REPLICAS +wait, in a cluster +cluster|slots, on the keys that begin with DEDUP_PREFIX"},
		{"READONLY", "this is a replica: point REDIS_URL at the primary, or at the sentinels with REDIS_SENTINEL_MASTER; after a fail-over this passes"},
		{"LOADING", "the server is starting: it answers when its data is loaded"},
		{"MASTERDOWN", "this is a replica that has lost its primary: point REDIS_URL at the primary"},
		{"BUSY", "a script of somebody else blocks the server: end it with SCRIPT KILL"},
		{"OOM", "the server is out of memory: raise maxmemory or shorten DEDUP_RETENTION"},
		{"MISCONF", "the server cannot save its data and refuses writes: see its log"},
		{"NOREPLICAS", "too few replicas are in step for the server's min-replicas-to-write"},
		{"ERR max number of clients reached", "raise the server's maxclients"},
		{"CLUSTERDOWN", "the cluster does not serve all slots: see CLUSTER INFO; a fail-over may be on its way"},
		{"ERR This instance has cluster support disabled", "the server is no cluster: unset REDIS_CLUSTER"},
		{"MOVED", "this server is part of a cluster: set REDIS_CLUSTER=true"},
		{"WRONGTYPE", "the key belongs to another program: use a DEDUP_PREFIX of its own"},
	} {
		if strings.Contains(text+" ", known.code+" ") {
			return known.advice
		}
	}
	return ""
}
