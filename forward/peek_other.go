//go:build !unix

package forward

import "syscall"

// peek sees nothing on this system; bytes are still counted.
func peek(syscall.RawConn) socketState { return socketQuiet }
