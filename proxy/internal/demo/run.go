package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// options are what a run is told.
type options struct {
	brokerURL, redisURL string        // "" for throwaway ones
	pace                time.Duration // between two orders
	serviceDown         time.Duration
	brokerGone          time.Duration
	out                 io.Writer
	colored             bool
}

// run is the whole demo. It leaves nothing running and returns rabbitonce's column of the table; an error, of which the
// ends of the logs are printed, means that there is no table to trust.
func run(ctx context.Context, o options) (result tally, err error) {
	p := &printer{out: o.out, color: palette(o.colored)}
	servers, err := startServers(ctx, o, p)
	defer func() { err = withClose(err, servers.close()) }()
	if err != nil {
		return tally{}, causeOf(ctx, err)
	}
	s := &stage{options: o, printer: p, servers: servers}
	defer func() { err = withClose(err, s.close()) }()
	if err := s.play(ctx); err != nil {
		p.breakOff()
		err = causeOf(ctx, err)
		if err != errInterrupted {
			s.printTails()
		}
		return tally{}, err
	}
	confirmed := s.publisher.confirmed()
	result = count(s.rabbitonce.books(confirmed))
	p.table(count(s.plain.books(confirmed)), result)
	if !result.kept() {
		p.line("%s", s.rabbitonce.tail())
	}
	return result, nil
}

func (s *stage) play(ctx context.Context) error {
	if err := s.build(); err != nil {
		return err
	}
	s.printer.line("\none stream of orders, two consumers, the same troubles:")
	if err := s.story(ctx); err != nil {
		return err
	}
	return s.finish(ctx)
}

// errInterrupted says that the user ended the run.
var errInterrupted = errors.New("interrupted")

// causeOf is the error to report: whatever fails after the end of ctx fails because of that.
func causeOf(ctx context.Context, err error) error {
	switch {
	case ctx.Err() == nil:
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return errInterrupted
	}
	return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
}

// withClose adds the error of a close to err, which stays what it is when there is none.
func withClose(err, closing error) error {
	if closing == nil {
		return err
	}
	return errors.Join(err, fmt.Errorf("clean up: %w", closing))
}

func (s *stage) printTails() {
	for _, side := range []*side{s.plain, s.rabbitonce} {
		if side != nil {
			s.printer.line("%s", side.tail())
		}
	}
}
