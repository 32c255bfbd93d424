package dedup

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Server is what one server of the store tells about itself. What a user may not ask for is zero.
type Server struct {
	Address   string
	RoundTrip time.Duration // the quickest of a few
	Ahead     time.Duration // its clock less ours, to about half a round trip

	Told         bool   // it answered INFO; without that there is nothing below
	Product      string // Redis or Valkey
	Version      string
	Role         string // master, as Redis calls a primary, or slave
	Replicas     int    // that are connected
	Eviction     string // maxmemory-policy
	UsedMemory   int64  // bytes
	MaxMemory    int64  // bytes; 0: no limit
	AppendOnly   bool   // changes are written to a file as they come
	SavingFailed bool   // its last attempt to save failed
}

// roundTrips is how many round trips Examine measures.
const roundTrips = 5

// Examine asks the server about itself; in a cluster each primary. A store in memory has none. It needs +ping and
// +time, and +info for all that is not a time. The error says which server does not answer.
func (s *Store) Examine(ctx context.Context) ([]Server, error) {
	servers, err := s.backend.examine(ctx)
	if err != nil {
		return servers, fmt.Errorf("examine store: %w", err)
	}
	return servers, nil
}

// read fills in what INFO says (https://redis.io/docs/latest/commands/info/).
func (s *Server) read(info string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	s.Told = true
	s.Product, s.Version = "Redis", fields["redis_version"]
	if v := fields["valkey_version"]; v != "" { // which gives a redis_version too, of the Redis that it is compatible with
		s.Product, s.Version = "Valkey", v
	}
	s.Role, s.Eviction = fields["role"], fields["maxmemory_policy"]
	s.Replicas = int(number(fields["connected_slaves"]))
	s.UsedMemory, s.MaxMemory = number(fields["used_memory"]), number(fields["maxmemory"])
	s.AppendOnly = fields["aof_enabled"] == "1"
	s.SavingFailed = fields["aof_last_write_status"] == "err" || fields["rdb_last_bgsave_status"] == "err"
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
