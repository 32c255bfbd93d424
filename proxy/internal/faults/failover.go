package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// pair is a store and its replica, which takes over once. What has not reached the replica by then is lost.
type pair struct {
	master, replica, next *testkit.Redis
	between               *testkit.FaultProxy // from the replica to the master
}

// newPair returns when the replica follows the master.
func newPair(ctx context.Context) (*pair, error) {
	p := &pair{}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *pair) open(ctx context.Context) error {
	var err error
	if p.master, err = testkit.StartRedis(ctx, testkit.RedisOptions{Args: storeArgs}); err != nil {
		return err
	}
	if p.between, err = testkit.NewFaultProxy(p.master.Addr, testkit.Raw); err != nil {
		return err
	}
	p.replica, err = startReplicaOf(ctx, p.between.Addr)
	return err
}

func startReplicaOf(ctx context.Context, addr string) (*testkit.Redis, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	r, err := testkit.StartRedis(ctx, testkit.RedisOptions{Args: append([]string{"--replicaof", host + " " + port}, storeArgs...)})
	if err != nil {
		return nil, err
	}
	for {
		text, err := ask(r.Addr, "INFO replication", "master_link_status")
		if err == nil && strings.HasSuffix(text, ":up") {
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("wait for a replica of %s: %w", addr, context.Cause(ctx)), err, r.Close())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// failOver loses the replica's last half second, kills the master and has the replica take over.
func (p *pair) failOver(s *stage, _ *replica, _ *rand.Rand) error {
	if p.next != nil {
		return nil // it happens once
	}
	p.between.Stall()
	time.Sleep(500 * time.Millisecond)
	if err := p.master.Kill(); err != nil {
		return err
	}
	if _, err := ask(p.replica.Addr, "REPLICAOF NO ONE", "+OK"); err != nil {
		return err
	}
	for _, r := range s.replicas {
		r.store.Retarget(p.replica.Addr)
		r.store.Cut()
	}
	ctx, cancel := within()
	defer cancel()
	var err error
	p.next, err = startReplicaOf(ctx, p.replica.Addr)
	return err
}

func (p *pair) lanes() []lane {
	return []lane{{name: "fail-over", pause: 8 * time.Second, kinds: []kind{{name: "fail-over", part: check.PartStore, hit: p.failOver}}}}
}

func (p *pair) close() error {
	var err error
	for _, r := range []*testkit.Redis{p.master, p.replica, p.next} {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}
	if p.between != nil {
		err = errors.Join(err, p.between.Close())
	}
	return err
}

// ask sends a command to a store and returns the line of its answer that begins so.
func ask(addr, command, begin string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte(command + "\r\n")); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), begin) {
			return lines.Text(), nil
		}
	}
	return "", errors.Join(fmt.Errorf("ask %s %q: no %s", addr, command, begin), lines.Err())
}
