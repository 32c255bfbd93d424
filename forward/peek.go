package forward

// socketState is what a look into a socket finds.
type socketState uint8

const (
	socketQuiet   socketState = iota // open, and nothing to read
	socketHasData                    // bytes to read
	socketClosed                     // closed or reset by the other side
)
