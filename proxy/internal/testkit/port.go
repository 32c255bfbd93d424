package testkit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"
)

// Ports are taken from below Linux's ephemeral range (32768 and up): the port of a server that is down for a while
// must not become the source port of somebody's outgoing connection.
const (
	lowestPort  = 10000
	highestPort = 32000
)

// port is a loopback TCP port that no other user of the kit, in this process or another, is given before release.
// The reservation is an abstract Unix socket named by the port: the kernel makes it exclusive, and it goes with the
// process.
type port struct {
	number int
	lock   net.Listener
}

func reservePort() (port, error) {
	for range 500 {
		number := lowestPort + rand.IntN(highestPort-lowestPort)
		lock, err := net.Listen("unix", fmt.Sprintf("@rabbitonce-testkit-port-%d", number))
		if err != nil {
			continue
		}
		p := port{number: number, lock: lock}
		probe, err := net.Listen("tcp", p.address())
		if err != nil {
			p.release()
			continue
		}
		_ = probe.Close()
		return p, nil
	}
	return port{}, errors.New("reserve port: no free loopback port found")
}

// listen listens on an address of the kit again. A process that is just being started holds a copy of the socket that
// was closed, between its fork and its exec, and the address with it.
func listen(address string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		listener, err := net.Listen("tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) || ctx.Err() != nil {
			return listener, err
		}
		time.Sleep(pollInterval)
	}
}

func (p port) address() string { return fmt.Sprintf("127.0.0.1:%d", p.number) }

func (p port) release() {
	if p.lock != nil {
		_ = p.lock.Close()
	}
}
