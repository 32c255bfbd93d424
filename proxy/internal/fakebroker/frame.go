package fakebroker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Frames (section 4.2.3 of the specification): type, channel, size, payload, end mark.
const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
	frameEnd       = 0xCE

	frameMax     = 128 << 10
	frameMinimum = 4096
)

// protocolHeader is how a client begins.
const protocolHeader = "AMQP\x00\x00\x09\x01"

type frame struct {
	kind    byte
	channel uint16
	payload []byte
}

func readFrame(r *bufio.Reader) (frame, error) {
	var head [7]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head[3:])
	if size > frameMax {
		return frame{}, fmt.Errorf("a frame of %d bytes", size)
	}
	f := frame{kind: head[0], channel: binary.BigEndian.Uint16(head[1:]), payload: make([]byte, size+1)}
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return frame{}, err
	}
	if f.payload[size] != frameEnd {
		return frame{}, errors.New("a frame without its end mark")
	}
	f.payload = f.payload[:size]
	return f, nil
}

func (e *encoder) frame(kind byte, channel uint16, payload []byte) {
	e.octet(kind)
	e.short(channel)
	e.longstr(string(payload))
	e.octet(frameEnd)
}

// method is a class and a method of the protocol (https://www.rabbitmq.com/amqp-0-9-1-reference).
type method struct{ class, number uint16 }

var (
	connectionStart     = method{10, 10}
	connectionStartOK   = method{10, 11}
	connectionTune      = method{10, 30}
	connectionTuneOK    = method{10, 31}
	connectionOpen      = method{10, 40}
	connectionOpenOK    = method{10, 41}
	connectionClose     = method{10, 50}
	connectionCloseOK   = method{10, 51}
	connectionBlocked   = method{10, 60}
	connectionUnblocked = method{10, 61}

	channelOpen    = method{20, 10}
	channelOpenOK  = method{20, 11}
	channelClose   = method{20, 40}
	channelCloseOK = method{20, 41}

	queueDeclare   = method{50, 10}
	queueDeclareOK = method{50, 11}
	queuePurge     = method{50, 30}
	queuePurgeOK   = method{50, 31}
	queueDelete    = method{50, 40}
	queueDeleteOK  = method{50, 41}

	basicQos       = method{60, 10}
	basicQosOK     = method{60, 11}
	basicConsume   = method{60, 20}
	basicConsumeOK = method{60, 21}
	basicCancel    = method{60, 30}
	basicCancelOK  = method{60, 31}
	basicPublish   = method{60, 40}
	basicReturn    = method{60, 50}
	basicDeliver   = method{60, 60}
	basicGet       = method{60, 70}
	basicGetOK     = method{60, 71}
	basicGetEmpty  = method{60, 72}
	basicAck       = method{60, 80}
	basicReject    = method{60, 90}
	basicNack      = method{60, 120}

	confirmSelect   = method{85, 10}
	confirmSelectOK = method{85, 11}
)

// Reply codes.
const (
	codeNoRoute        = 312
	codeForced         = 320
	codeAccessRefused  = 403
	codeNotFound       = 404
	codePrecondition   = 406
	codeFrameError     = 501
	codeCommandInvalid = 503
	codeChannelError   = 504
	codeNotAllowed     = 530
	codeNotImplemented = 540
)

// reply is the end of a channel, or of the whole connection.
type reply struct {
	code int
	text string
	hard bool // the connection's
}

func (r *reply) Error() string { return fmt.Sprintf("%d %s", r.code, r.text) }

func soft(code int, format string, args ...any) error {
	return &reply{code: code, text: fmt.Sprintf(format, args...)}
}

func hard(code int, format string, args ...any) error {
	return &reply{code: code, text: fmt.Sprintf(format, args...), hard: true}
}
