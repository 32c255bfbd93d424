package dedup

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// lossyProxy stands between a store and its server and can lose an answer: the
// server has done what it was asked, and the connection ends before anybody
// hears of it.
type lossyProxy struct {
	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	target string
	lose   []byte // answers to a request that holds this are lost, once
	losses int
}

func newLossyProxy(t *testing.T, target string) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyProxy{listener: listener, target: target}
	p.work.Go(p.accept)
	return p
}

// lead lets new connections end at another server.
func (p *lossyProxy) lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// close is for after the store is closed, so that all connections have ended.
func (p *lossyProxy) close() {
	_ = p.listener.Close()
	p.work.Wait()
}

func (p *lossyProxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.work.Go(func() { p.serve(client) })
	}
}

// loseAnswerTo loses the answer to the next request with this word in it.
func (p *lossyProxy) loseAnswerTo(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = []byte(word)
}

func (p *lossyProxy) lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.losses
}

// takes reports whether the answer to a request is to be lost.
func (p *lossyProxy) takes(request []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose == nil || !bytes.Contains(request, p.lose) {
		return false
	}
	p.lose = nil
	p.losses++
	return true
}

// serve passes on one request and its answer after the other. What the tests
// send and get fits into one read each.
func (p *lossyProxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	buffer := make([]byte, 64<<10)
	pass := func(from io.Reader, to io.Writer, forward func([]byte) bool) bool {
		n, err := from.Read(buffer)
		if err != nil || !forward(buffer[:n]) {
			return false
		}
		_, err = to.Write(buffer[:n])
		return err == nil
	}
	for {
		lose := false
		asked := pass(client, server, func(request []byte) bool {
			lose = p.takes(request)
			return true
		})
		if !asked || !pass(server, client, func([]byte) bool { return !lose }) {
			return
		}
	}
}
