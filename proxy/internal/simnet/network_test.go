package simnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lag = time.Second

// bench is a network with a latency of a second and one connection. The server keeps what it reads in heard.
type bench struct {
	*testing.T
	net   *Network
	conn  net.Conn // the client's end
	far   net.Conn // the server's
	heard chan string
}

func run(t *testing.T, test func(b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, heard: make(chan string, 10)}
		b.net = New(func(int) func() time.Duration { return func() time.Duration { return lag } })
		b.net.Serve("server:1", func(conn net.Conn) {
			b.far = conn
			buffer := make([]byte, 100)
			for {
				n, err := conn.Read(buffer)
				if err != nil {
					b.heard <- err.Error()
					return
				}
				b.heard <- string(buffer[:n])
			}
		})
		var err error
		if b.conn, err = b.net.Dial(t.Context(), "client", "server:1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		test(b)
		_, _ = b.conn.Close(), b.far.Close()
		b.net.Wait()
	})
}

// hears wants the server to read this after so long; "" is nothing.
func (b *bench) hears(want string, after time.Duration) {
	b.Helper()
	began := time.Now()
	select {
	case got := <-b.heard:
		if got != want || time.Since(began) != after {
			b.Errorf("heard %q after %v, want %q after %v", got, time.Since(began), want, after)
		}
	case <-time.After(time.Minute):
		if want != "" {
			b.Errorf("heard nothing, want %q", want)
		}
	}
}

func (b *bench) say(text string) {
	b.Helper()
	if n, err := b.conn.Write([]byte(text)); n != len(text) || err != nil {
		b.Errorf("write: %d, %v", n, err)
	}
}

func TestAWriteTakesItsTimeAndNoneOvertakes(t *testing.T) {
	run(t, func(b *bench) {
		b.say("a")
		b.say("b")
		b.hears("a", lag)
		b.hears("b", 0)
	})
}

func TestACloseComesAfterWhatWasWritten(t *testing.T) {
	run(t, func(b *bench) {
		b.say("a")
		_ = b.conn.Close()
		b.hears("a", lag)
		b.hears(io.EOF.Error(), 0)
		if _, err := b.conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			b.Errorf("read: %v", err)
		}
	})
}

func TestACutLosesWhatIsUnderWay(t *testing.T) {
	run(t, func(b *bench) {
		b.say("a")
		b.net.Legs("client", "")[0].Cut()
		b.hears(syscall.ECONNRESET.Error(), 0)
		if _, err := b.conn.Write([]byte("b")); !errors.Is(err, syscall.EPIPE) {
			b.Errorf("write: %v", err)
		}
	})
}

func TestAStallKeepsAndALossDrops(t *testing.T) {
	run(t, func(b *bench) {
		leg := b.net.Legs("", "server:1")[0]
		leg.Stall(true)
		b.say("a")
		b.hears("", 0)
		leg.Stall(false)
		b.hears("a", 0)
		leg.Lose()
		b.say("b")
		b.hears("", 0)
	})
}

func TestAKilledHostIsHeardOutAndSaysNoMore(t *testing.T) {
	run(t, func(b *bench) {
		b.say("a")
		b.net.Kill("client")
		_, _ = b.conn.Write([]byte("b"))
		b.hears("a", lag)
		b.hears(io.EOF.Error(), 0)
		if _, err := b.conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			b.Errorf("read: %v", err)
		}
		if _, err := b.net.Dial(b.Context(), "client", "server:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			b.Errorf("dial: %v", err)
		}
	})
}

func TestAFrozenHostWaits(t *testing.T) {
	run(t, func(b *bench) {
		goOn := b.net.Freeze("client")
		b.say("a")
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		defer cancel()
		if _, err := b.net.Dial(ctx, "client", "server:1"); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("dial: %v", err)
		}
		goOn()
		b.hears("a", 0)
	})
}

func TestARefusedAddressAndADeadline(t *testing.T) {
	run(t, func(b *bench) {
		b.net.Refuse("server:1", true)
		_, err := b.net.Dial(b.Context(), "client", "server:1")
		if broken, ok := errors.AsType[*net.OpError](err); !ok || broken.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
			b.Errorf("dial: %v", err)
		}
		_ = b.conn.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := b.conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			b.Errorf("read: %v", err)
		}
	})
}
