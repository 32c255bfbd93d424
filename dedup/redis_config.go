package dedup

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// maxReplicas bounds DEDUP_WAIT_REPLICAS: more is a slip of the pen.
const maxReplicas = 100

// validateRedis returns every problem of the Redis settings.
func (c *Config) validateRedis() []error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if err := checkRedisURL(c.RedisURL.Reveal()); err != nil {
		add("REDIS_URL: %w", err)
	} else if err := c.checkKind(); err != nil {
		problems = append(problems, err)
	}
	if c.RedisSentinelMaster == "" && (c.RedisSentinelUsername != "" || c.RedisSentinelPassword != "") {
		add("REDIS_SENTINEL_PASSWORD: has no use without REDIS_SENTINEL_MASTER")
	}
	if c.WaitReplicas < 0 || c.WaitReplicas > maxReplicas {
		add("DEDUP_WAIT_REPLICAS: %d is not between 0 and %d", c.WaitReplicas, maxReplicas)
	}
	return append(problems, c.tlsFiles().Check()...)
}

// checkKind holds a URL that can be read against the settings that say what it
// leads to.
func (c *Config) checkKind() error {
	first, hosts := splitHosts(c.RedisURL.Reveal())
	u, err := url.Parse(first)
	if err != nil {
		return errors.New("REDIS_URL: is not a URL")
	}
	several := c.RedisCluster || c.RedisSentinelMaster != ""
	database := strings.Trim(u.Path, "/") + u.Query().Get("db")
	switch {
	case c.RedisCluster && c.RedisSentinelMaster != "":
		return errors.New("REDIS_CLUSTER: excludes REDIS_SENTINEL_MASTER; a cluster does its own fail-over")
	case len(hosts) > 1 && !several:
		return errors.New("REDIS_URL: names several hosts; set REDIS_CLUSTER=true if they are nodes of a cluster, REDIS_SENTINEL_MASTER if they are sentinels")
	case u.Scheme == "unix" && several:
		return errors.New("REDIS_URL: is a socket, which leads to no cluster and no sentinel")
	case c.RedisCluster && database != "" && database != "0":
		return errors.New("REDIS_URL: names a database, and a cluster has only 0")
	case u.Scheme != "rediss" && !c.tlsFiles().IsZero():
		return errors.New("REDIS_TLS_CA_FILE and the like: have no use without TLS; write rediss:// in REDIS_URL")
	}
	return nil
}

func (c *Config) tlsFiles() *TLSFiles {
	return &TLSFiles{
		Variables: "REDIS_TLS",
		CA:        c.RedisTLSCAFile, Cert: c.RedisTLSCertFile, Key: c.RedisTLSKeyFile, ServerName: c.RedisTLSServerName,
	}
}
