//go:build unix

package forward

import (
	"errors"
	"syscall"
)

// peek looks into a socket without waiting and without taking anything out. It
// may run while another goroutine waits in Read: Control takes no read lock.
func peek(raw syscall.RawConn) socketState {
	state := socketQuiet
	err := raw.Control(func(fd uintptr) {
		var one [1]byte
		// The runtime keeps sockets non-blocking, so this returns at once.
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		switch {
		case err == nil && n > 0:
			state = socketHasData
		case err == nil:
			state = socketClosed
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		default:
			state = socketClosed
		}
	})
	if err != nil {
		return socketClosed
	}
	return state
}
