package testkit

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// heard is what a watcher has seen.
type heard struct {
	mu     sync.Mutex
	chunks []string
}

func (h *heard) see(u Unit) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.chunks = append(h.chunks, string(u.Fresh()))
}

func (h *heard) want(t *testing.T, chunks ...string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		h.mu.Lock()
		got := slices.Clone(h.chunks)
		h.mu.Unlock()
		if slices.Equal(got, chunks) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the watcher saw %q, want %q", got, chunks)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestWatchersSeeWhatAFaultHolds(t *testing.T) {
	c := newPair(t, Raw)
	var h heard
	c.proxy.Watch(ToServer, h.see)
	send(t, c.client, "one")
	receive(t, c.server, "one")
	send(t, c.server, "answer")
	receive(t, c.client, "answer")
	c.proxy.Stall()
	send(t, c.client, "two")
	h.want(t, "one", "two")
	nothing(t, c.server)
	c.proxy.Unstall()
	receive(t, c.server, "two")
	c.proxy.Cut(ToServer)
	send(t, c.client, "three") // into the void
	h.want(t, "one", "two", "three")
}

func TestWatchersSeeWhatHasNoServer(t *testing.T) {
	proxy, err := NewFaultProxy("127.0.0.1:1", Raw)
	must(t, err)
	closing(t, proxy)
	var h heard
	proxy.Watch(ToServer, h.see)
	client, err := net.Dial("tcp", proxy.Addr)
	must(t, err)
	closing(t, client)
	send(t, client.(*net.TCPConn), "lost")
	h.want(t, "lost")
}

func TestProxyRetargets(t *testing.T) {
	proxy, first := newProxy(t, Raw)
	connect(t, proxy, first)
	_, second := newProxy(t, Raw)
	proxy.Retarget(second.Addr().String())
	connect(t, proxy, second)
}
