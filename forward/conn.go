package forward

import (
	"bufio"
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

const (
	// maxAnswerHeader bounds the status lines and headers of an answer.
	maxAnswerHeader = 64 << 10
	// maxInterim bounds the answers that only say that one is to come (1xx).
	maxInterim = 5
)

var (
	// errStale refuses to begin a request on a connection that the service closed, or on which it sent something before it
	// was asked.
	errStale       = errors.New("connection closed by the service")
	errHeaderSize  = errors.New("status line and headers of the answer are longer than 64 KiB")
	errManyInterim = errors.New("more than 5 interim answers (1xx)")
)

// conn is a connection to the service, which carries one request after another. It is used by one goroutine at a time, but for
// interrupt.
type conn struct {
	net.Conn
	socket    net.Conn
	secure    bool            // Conn is TLS over socket: a failed write may have sent bytes
	raw       syscall.RawConn // of the socket, to look at what it holds; nil if it has none
	in        *bufio.Reader   // of what is read from here
	room      int             // how many bytes may still be read
	used      bool            // it has carried a request
	late      bool            // an answer did not come in time
	idleSince time.Time

	interrupt func() // ends whatever waits on the connection, for good
}

// newConn wraps a connection whose socket is socket; they differ over TLS.
func newConn(c, socket net.Conn) *conn {
	k := &conn{Conn: c, socket: socket, secure: c != socket}
	if s, ok := socket.(syscall.Conn); ok { // else nobody can look ahead
		k.raw, _ = s.SyscallConn()
	}
	k.in = bufio.NewReader(k)
	k.interrupt = func() { _ = k.SetDeadline(time.Unix(1, 0)) }
	return k
}

// stale looks into the socket: a service that closes an idle connection does so at any time, and a request written after that
// is lost without anyone knowing whether it was read. Looking right before the first byte leaves only what is under way at that
// moment. Bytes that wait there are no answer to a request that was not sent. Over TLS they may be what ends the handshake
// (session tickets, RFC 8446, 4.6.1) unless the connection was used before.
func (k *conn) stale() bool {
	if k.raw == nil {
		return false
	}
	state := peek(k.raw)
	return state == socketClosed || (state == socketHasData && (!k.secure || k.used))
}

// unread tells that the service has sent more than was read, which is no longer in the socket: it was read ahead, or, over TLS,
// decrypted or about to be. It ends the time for reading.
func (k *conn) unread() bool {
	if k.in.Buffered() > 0 || !k.secure {
		return k.in.Buffered() > 0
	}
	_ = k.SetReadDeadline(time.Unix(1, 0)) // what is here is read all the same
	var one [1]byte
	n, err := k.Conn.Read(one[:])
	return n > 0 || !errors.Is(err, os.ErrDeadlineExceeded)
}

// abandon closes the connection without a word: TLS would wait for up to five seconds to say that it ends, when the service takes
// nothing.
func (k *conn) abandon() { _ = k.socket.Close() }

// Read is what the reader of answers reads from.
func (k *conn) Read(p []byte) (int, error) {
	if k.room <= 0 {
		return 0, errHeaderSize
	}
	n, err := k.Conn.Read(p[:min(len(p), k.room)])
	k.room -= n
	k.late = errors.Is(err, os.ErrDeadlineExceeded) // a parser may say something else of what there is until then
	return n, err
}

// posted tells the parser of answers to what it is one.
var posted = &http.Request{Method: http.MethodPost}

// answer reads the status and headers of an answer. Its body is to be read from it, and not to be closed, which would wait for
// the rest.
func (k *conn) answer() (*http.Response, error) {
	k.room = maxAnswerHeader
	for range maxInterim + 1 {
		response, err := http.ReadResponse(k.in, posted)
		if err != nil {
			return nil, err
		}
		// 101 hands the connection to another protocol and is the last.
		if response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			k.room = math.MaxInt
			return response, nil
		}
	}
	return nil, errManyInterim
}

// begin writes the beginning of a request and reports whether a byte of it may have left.
func (k *conn) begin(p []byte) (began bool, err error) {
	k.used = true
	n, err := k.Write(p)
	return err == nil || n > 0 || k.secure, err
}
