package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// watchedPipe is a watched connection after its handshake, and the broker's end of it.
func watchedPipe(t *testing.T, writes bool) (*watchedConn, net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := &watchedConn{Conn: ours, patience: heartbeat, writes: writes}
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	return c, theirs
}

// longestSilence is when a silent broker must have been noticed.
const longestSilence = heartbeat + heartbeat/5

func TestASilentBrokerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := watchedPipe(t, false)
		began := time.Now()
		_, err := c.Read(make([]byte, 10))
		if err == nil || !strings.Contains(err.Error(), "heartbeat") {
			t.Errorf("read: %v", err)
		}
		if silence := time.Since(began); silence < heartbeat || silence > longestSilence {
			t.Errorf("noticed after %v", silence)
		}
	})
}

// TestHeartbeatsKeepAConnection: whatever the library does with its own deadline.
func TestHeartbeatsKeepAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, broker := watchedPipe(t, true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				time.Sleep(heartbeat - time.Millisecond)
				_, _ = broker.Write([]byte("beat"))
			}
			_ = broker.Close()
		}()
		got, buffer := 0, make([]byte, 4)
		for {
			n, err := c.Read(buffer)
			got += n
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("after %d bytes: %v", got, err)
			}
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil { // not ours to keep
				t.Fatal(err)
			}
		}
		if <-done; got != 80 {
			t.Errorf("%d bytes", got)
		}
	})
}

// slowConn answers the first read with a missed deadline, as after the process was stopped: the bytes were there.
type slowConn struct {
	net.Conn
	missed bool
}

func (c *slowConn) Read(p []byte) (int, error) {
	if !c.missed {
		c.missed = true
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Read(p)
}

func TestWhatCameWhileTheProcessWasStoppedIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, broker := watchedPipe(t, false)
		c.Conn = &slowConn{Conn: c.Conn}
		go func() { _, _ = broker.Write([]byte("beat")) }()
		if n, err := c.Read(make([]byte, 10)); n != 4 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

func TestAWriteThatStandsStillIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := watchedPipe(t, true)
		began := time.Now()
		_, err := c.Write([]byte("ack"))
		if err == nil || !strings.Contains(err.Error(), "took no data") {
			t.Errorf("write: %v", err)
		}
		if still := time.Since(began); still < heartbeat || still > longestSilence {
			t.Errorf("noticed after %v", still)
		}
	})
}

// TestASlowWriteGoesOn: a large message over a slow line takes as long as it takes.
func TestASlowWriteGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, broker := watchedPipe(t, true)
		read := make(chan string, 1)
		go func() {
			var all []byte
			for one := make([]byte, 1); len(all) < 5; {
				time.Sleep(heartbeat - time.Second)
				n, _ := broker.Read(one)
				all = append(all, one[:n]...)
			}
			read <- string(all)
		}()
		if n, err := c.Write([]byte("large")); n != 5 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		if got := <-read; got != "large" {
			t.Errorf("the broker got %q", got)
		}
	})
}

// TestABlockedPublisherWaits: the broker stops reading from publishers while an alarm is on, and goes on with heartbeats.
func TestABlockedPublisherWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, broker := watchedPipe(t, false)
		go func() {
			time.Sleep(time.Hour)
			_, _ = broker.Read(make([]byte, 10))
		}()
		if n, err := c.Write([]byte("letter")); n != 6 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// TestTheEndOfReadingEndsWriting: the library closes a connection only after a write under way has returned.
func TestTheEndOfReadingEndsWriting(t *testing.T) {
	for _, writes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := watchedPipe(t, writes)
			wrote := make(chan error, 1)
			go func() {
				_, err := c.Write([]byte("ack"))
				wrote <- err
			}()
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("read: no error")
			}
			if err := <-wrote; err == nil {
				t.Error("write: no error")
			}
			if _, err := c.Write([]byte("ack")); err == nil {
				t.Error("a later write: no error")
			}
		})
	}
}

// TestDeadlinesOfAnOrderlyCloseHold: CloseDeadline must not take longer than it is given.
func TestDeadlinesOfAnOrderlyCloseHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := watchedPipe(t, true)
		began := time.Now()
		if err := c.SetDeadline(time.Now().Add(closeTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte("close")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		if took := time.Since(began); took != closeTimeout {
			t.Errorf("took %v", took)
		}
	})
}
