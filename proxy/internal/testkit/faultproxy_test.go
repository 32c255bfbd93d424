package testkit

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pair is a client's connection through a proxy, and the server's end of it.
type pair struct {
	proxy          *FaultProxy
	client, server *net.TCPConn
}

// newProxy returns a proxy and what accepts connections behind it.
func newProxy(t *testing.T, protocol Protocol) (*FaultProxy, *net.TCPListener) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closing(t, listener)
	proxy, err := NewFaultProxy(listener.Addr().String(), protocol)
	must(t, err)
	closing(t, proxy)
	return proxy, listener.(*net.TCPListener)
}

func connect(t *testing.T, proxy *FaultProxy, listener *net.TCPListener) pair {
	t.Helper()
	client, err := net.Dial("tcp", proxy.Addr)
	must(t, err)
	must(t, listener.SetDeadline(time.Now().Add(10*time.Second)))
	server, err := listener.Accept()
	must(t, err)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return pair{proxy, client.(*net.TCPConn), server.(*net.TCPConn)}
}

func newPair(t *testing.T, protocol Protocol) pair {
	proxy, listener := newProxy(t, protocol)
	return connect(t, proxy, listener)
}

func send(t *testing.T, to *net.TCPConn, text string) {
	t.Helper()
	if _, err := to.Write([]byte(text)); err != nil {
		t.Fatalf("send %q: %v", text, err)
	}
}

func receive(t *testing.T, from *net.TCPConn, want string) {
	t.Helper()
	must(t, from.SetReadDeadline(time.Now().Add(10*time.Second)))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("received %q, %v; want %q", got[:n], err, want)
	}
}

// nothing fails the test when a byte or an end arrives.
func nothing(t *testing.T, from *net.TCPConn) {
	t.Helper()
	must(t, from.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	n, err := from.Read(make([]byte, 10))
	var timeout net.Error
	if n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Fatalf("received %d bytes, %v; want nothing", n, err)
	}
}

// ends reads the end of a connection: io.EOF for FIN, ECONNRESET for RST.
func ends(t *testing.T, from *net.TCPConn, want error) {
	t.Helper()
	must(t, from.SetReadDeadline(time.Now().Add(10*time.Second)))
	if n, err := from.Read(make([]byte, 10)); n > 0 || !errors.Is(err, want) {
		t.Fatalf("read %d bytes, %v; want %v", n, err, want)
	}
}

func TestProxyForwardsBothWaysAndEnds(t *testing.T) {
	c := newPair(t, Raw)
	send(t, c.client, "question")
	receive(t, c.server, "question")
	must(t, c.client.CloseWrite())
	ends(t, c.server, io.EOF)
	send(t, c.server, "answer") // a half-closed connection still works the other way
	receive(t, c.client, "answer")
	must(t, c.server.Close())
	ends(t, c.client, io.EOF)
}

func TestProxyForwardsReset(t *testing.T) {
	c := newPair(t, Raw)
	abort(c.client)
	ends(t, c.server, syscall.ECONNRESET)
}

func TestProxyCutIsFIN(t *testing.T) {
	c := newPair(t, Raw)
	c.proxy.Cut()
	ends(t, c.client, io.EOF)
	ends(t, c.server, io.EOF)
}

func TestProxyCutOneWay(t *testing.T) {
	c := newPair(t, Raw)
	c.proxy.Cut(ToClient)
	ends(t, c.client, io.EOF)
	send(t, c.server, "lost")
	send(t, c.client, "kept")
	receive(t, c.server, "kept")
}

func TestProxyResetIsRST(t *testing.T) {
	c := newPair(t, Raw)
	c.proxy.Reset()
	ends(t, c.client, syscall.ECONNRESET)
	ends(t, c.server, syscall.ECONNRESET)
}

func TestProxyResetOneWayLeavesTheOtherEndInTheDark(t *testing.T) {
	c := newPair(t, Raw)
	c.proxy.Reset(ToServer)
	ends(t, c.server, syscall.ECONNRESET)
	send(t, c.client, "into the void")
	nothing(t, c.client)
}

func TestProxyStall(t *testing.T) {
	c := newPair(t, Raw)
	c.proxy.Stall(ToServer)
	send(t, c.client, "late")
	must(t, c.client.CloseWrite())
	nothing(t, c.server)
	send(t, c.server, "on time")
	receive(t, c.client, "on time")
	c.proxy.Unstall()
	receive(t, c.server, "late")
	ends(t, c.server, io.EOF)
}

func TestProxyCutWhileStalled(t *testing.T) {
	c := newPair(t, Raw)
	c.proxy.Stall()
	send(t, c.client, "never")
	nothing(t, c.server)
	c.proxy.Cut()
	ends(t, c.server, io.EOF)
	ends(t, c.client, io.EOF)
}

func TestProxyDelay(t *testing.T) {
	c := newPair(t, Raw)
	const delay = 150 * time.Millisecond
	c.proxy.Delay(delay, ToServer)
	began := time.Now()
	send(t, c.client, "slow")
	receive(t, c.server, "slow")
	if took := time.Since(began); took < delay {
		t.Errorf("took %v, want %v at least", took, delay)
	}
}

func TestProxyRefuseAndReopen(t *testing.T) {
	proxy, listener := newProxy(t, Raw)
	c := connect(t, proxy, listener)
	proxy.Refuse()
	if err := dialable(proxy.Addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial while refusing: %v", err)
	}
	send(t, c.client, "open ones go on")
	receive(t, c.server, "open ones go on")
	must(t, proxy.Reopen())
	again := connect(t, proxy, listener)
	send(t, again.client, "back")
	receive(t, again.server, "back")
	if n := proxy.Connections(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestProxyWithoutServerResets(t *testing.T) {
	unused, err := reservePort()
	must(t, err)
	defer unused.release()
	proxy, err := NewFaultProxy(unused.address(), Raw)
	must(t, err)
	closing(t, proxy)
	client, err := net.Dial("tcp", proxy.Addr)
	if errors.Is(err, syscall.ECONNRESET) {
		return // so soon that dialling already saw it
	}
	must(t, err)
	defer client.Close()
	ends(t, client.(*net.TCPConn), syscall.ECONNRESET)
}

func TestBarrierHoldsAndReleases(t *testing.T) {
	c := newPair(t, AMQP)
	ack, publish := string(method(60, 80, "tag")), string(method(60, 40, "orders"))
	barrier := c.proxy.Barrier(ToServer, BasicAck())
	send(t, c.client, publish+ack+publish)
	must(t, barrier.Wait(within(t, 10*time.Second)))
	receive(t, c.server, publish) // what came before the ack, in the same chunk, passed
	nothing(t, c.server)
	send(t, c.server, publish) // the other direction goes on
	receive(t, c.client, publish)
	barrier.Release()
	receive(t, c.server, ack+publish)
	send(t, c.client, ack) // a barrier fires once
	receive(t, c.server, ack)
}

func TestBarrierInserts(t *testing.T) {
	c := newPair(t, AMQP)
	ack, publish := string(method(60, 80, "tag")), string(method(60, 40, "orders"))
	barrier := c.proxy.Barrier(ToServer, BasicAck())
	send(t, c.client, publish+ack+publish)
	must(t, barrier.Wait(within(t, 10*time.Second)))
	if got := string(barrier.Held()); got != ack {
		t.Errorf("held %q, want %q", got, ack)
	}
	barrier.Insert(AMQPMethodFrame(barrier.Held(), 40, 10, []byte("logs")))
	receive(t, c.server, publish+string(method(40, 10, "logs"))+ack+publish)
}

func TestBarrierDrops(t *testing.T) {
	c := newPair(t, RESP)
	command := "*6\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n$8\r\nkey:id-1\r\n$1\r\n1\r\n$5\r\nclaim\r\n"
	barrier := c.proxy.Barrier(ToClient, RedisOp("claim", "id-1"))
	send(t, c.client, "*1\r\n$4\r\nPING\r\n"+command)
	receive(t, c.server, "*1\r\n$4\r\nPING\r\n"+command)
	send(t, c.server, "+PONG\r\n*1\r\n:1\r\n")
	must(t, barrier.Wait(within(t, 10*time.Second)))
	receive(t, c.client, "+PONG\r\n") // the claim was taken, and its reply alone is held
	nothing(t, c.client)
	barrier.Drop()
	ends(t, c.client, io.EOF)
	ends(t, c.server, io.EOF)
}

func TestBarrierHoldsWhileTheClientDies(t *testing.T) {
	c := newPair(t, Raw)
	barrier := c.proxy.Barrier(ToServer, Contains("ack"))
	send(t, c.client, "ack")
	must(t, barrier.Wait(within(t, 10*time.Second)))
	must(t, c.client.Close())
	nothing(t, c.server)
	barrier.Drop()
	ends(t, c.server, io.EOF)
}

func TestBarrierNotReached(t *testing.T) {
	c := newPair(t, Raw)
	barrier := c.proxy.Barrier(ToServer, Contains("ack"))
	if err := barrier.Wait(within(t, 50*time.Millisecond)); err == nil || !strings.Contains(err.Error(), "to-server") {
		t.Errorf("Wait = %v", err)
	}
	barrier.Release()
	send(t, c.client, "ack")
	receive(t, c.server, "ack")
	select {
	case <-barrier.Reached():
		t.Error("a disarmed barrier was reached")
	default:
	}
}

func TestProxyCloseEndsEverything(t *testing.T) {
	c := newPair(t, Raw)
	barrier := c.proxy.Barrier(ToServer, Contains("held"))
	send(t, c.client, "held")
	must(t, barrier.Wait(within(t, 10*time.Second)))
	must(t, c.proxy.Close()) // although a pump waits at the barrier
	if _, err := net.Dial("tcp", c.proxy.Addr); err == nil {
		t.Error("a closed proxy accepts")
	}
	if err := c.proxy.Reopen(); err == nil {
		t.Error("a closed proxy opens again")
	}
}

func TestProxyCarriesMuch(t *testing.T) {
	c := newPair(t, Raw)
	text := strings.Repeat("0123456789", 1<<18)
	sent := make(chan error, 1)
	go func() {
		_, err := c.client.Write([]byte(text))
		sent <- err
	}()
	receive(t, c.server, text)
	must(t, <-sent)
}
