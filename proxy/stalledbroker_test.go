package proxy

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// A broker's side of a connection, as far as these tests go: it opens connections and channels, sends heartbeats, and
// stops reading or sending when it is told. The frames are those of
// https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf, section 4.2.

const (
	frameOfMethod    = 1
	frameOfHeartbeat = 8
)

func frame(kind byte, channel uint16, payload []byte) []byte {
	f := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	f = binary.BigEndian.AppendUint32(f, uint32(len(payload)))
	return append(append(f, payload...), 0xCE)
}

func method(channel, class, id uint16, arguments ...byte) []byte {
	payload := binary.BigEndian.AppendUint16(nil, class)
	return frame(frameOfMethod, channel, append(binary.BigEndian.AppendUint16(payload, id), arguments...))
}

func longText(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

// readFrame reads one frame of the client.
func readFrame(t *testing.T, conn net.Conn) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Errorf("read frame: %v", err)
		return
	}
	if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[3:]))+1); err != nil {
		t.Errorf("read frame: %v", err)
	}
}

// acceptConnection does the broker's part until the first channel is open.
func acceptConnection(t *testing.T, conn net.Conn) {
	send := func(b []byte) {
		if _, err := conn.Write(b); err != nil {
			t.Errorf("write frame: %v", err)
		}
	}
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
		t.Errorf("read header: %v", err)
	}
	start := append([]byte{0, 9, 0, 0, 0, 0}, longText("PLAIN")...)
	send(method(0, 10, 10, append(start, longText("en_US")...)...))
	readFrame(t, conn)                                                          // start-ok
	send(method(0, 10, 30, 0, 100, 0, 2, 0, 0, 0, byte(heartbeat/time.Second))) // tune
	readFrame(t, conn)                                                          // tune-ok
	readFrame(t, conn)                                                          // open
	send(method(0, 10, 41, 0))
	readFrame(t, conn) // channel.open
	send(method(1, 20, 11, 0, 0, 0, 0))
}

// TestABrokerThatStandsStillEndsTheConnection holds the AMQP library to it: it must not hang with the write that it
// waits for. In real time: a library's goroutine that waits for a lock stops the clock of a bubble.
func TestABrokerThatStandsStillEndsTheConnection(t *testing.T) {
	const patience = 300 * time.Millisecond
	for name, heartbeats := range map[string]bool{"sends heartbeats and reads nothing": true, "does nothing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			ended := make(chan struct{})
			brokerEnded := make(chan struct{})
			go func() {
				defer close(brokerEnded)
				acceptConnection(t, theirs)
				beat := time.NewTicker(patience / 3)
				defer beat.Stop()
				for heartbeats {
					select {
					case <-ended:
						return
					case <-beat.C:
						_, _ = theirs.Write(frame(frameOfHeartbeat, 0, nil))
					}
				}
			}()
			watched := &watchedConn{Conn: ours, patience: patience, writes: true}
			conn, err := openConnection(watched, "/", login{username: "u", password: "p"}, "test", "test")
			if err != nil {
				t.Fatal(err)
			}
			ch, err := conn.Channel()
			if err != nil {
				t.Fatal(err)
			}
			closed := ch.NotifyClose(make(chan *closing, 1))
			acked := make(chan error, 1)
			go func() { acked <- ch.Ack(1, false) }()
			select {
			case notice := <-closed:
				if notice == nil || whyEnded(channelEnd(notice)) != endNetwork {
					t.Errorf("the notice is %v", notice)
				}
			case <-time.After(heartbeat):
				t.Error("nobody noticed")
			}
			_, _ = ours.Close(), theirs.Close()
			if err := <-acked; err == nil {
				t.Error("the ack was written")
			}
			close(ended)
			<-brokerEnded
		})
	}
}
