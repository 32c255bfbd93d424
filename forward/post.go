package forward

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// post is one message on its way. It is used by one goroutine.
type post struct {
	client  *Client
	request *Request
	end     time.Time // there is no answer after that
	head    []byte    // request line and headers, and a small body
	rest    []byte    // a body that is not small
}

// send makes one request. again says that it failed only for want of a living
// connection: nothing was sent and a fresh connection may do.
func (p *post) send(ctx context.Context) (result Result, again bool) {
	c := p.client
	k := c.pool.take()
	if k == nil {
		dialing, cancel := context.WithDeadlineCause(ctx, p.end, ErrTimeout)
		defer cancel()
		var err error
		if k, err = c.dial(dialing); err != nil {
			return p.unsent(dialing, err), false
		}
		if k.unread() {
			k.abandon()
			return p.unsent(ctx, errStale), false
		}
	}
	reused := k.used
	_ = k.SetDeadline(p.end) // one that fails says so when it is used
	stop := context.AfterFunc(ctx, k.interrupt)
	result, began, reusable := p.exchange(ctx, k)
	switch {
	case !stop() || !reusable:
		k.abandon()
	case c.keepsNone:
		_ = k.Close()
	default:
		c.pool.put(k)
	}
	return result, !began && reused && ctx.Err() == nil && !errors.Is(result.Err, errRefused)
}

// errRefused is in the error of a request that Permit has stopped.
var errRefused = errors.New("not sent")

// unsent is the result of a request of which no byte has left.
func (p *post) unsent(ctx context.Context, err error) Result {
	return Result{Outcome: Unreachable, Err: p.failure(ctx, "before the request was sent", err)}
}

// exchange sends the request on a connection and reads the answer. began says whether a byte may have left, reusable that the
// connection may carry another request.
//
// A write that fails later is no answer: the service may have given one before it closed (413 while the body is still being
// sent), and the reading finds out in either case.
func (p *post) exchange(ctx context.Context, k *conn) (result Result, began, reusable bool) {
	if k.stale() {
		return p.unsent(ctx, errStale), false, false
	}
	if ctx.Err() != nil {
		return p.unsent(ctx, context.Cause(ctx)), false, false
	}
	if permit := p.request.Permit; permit != nil {
		if refused := permit(); refused != nil {
			return Result{Outcome: Unreachable, Err: fmt.Errorf("post to %s: %w: %w", p.client.target, errRefused, refused)}, false, false
		}
	}
	began, err := k.begin(p.head)
	if !began {
		return p.unsent(ctx, err), false, false
	}
	if err != nil || len(p.rest) == 0 {
		result, reusable = p.receive(ctx, k)
		return result, true, reusable && err == nil
	}
	// A service may answer while the body is still being sent, and take no more of it.
	wrote := make(chan error, 1)
	go func() {
		_, err := k.Write(p.rest)
		wrote <- err
	}()
	result, reusable = p.receive(ctx, k)
	_ = k.SetWriteDeadline(time.Unix(1, 0)) // no byte leaves any more
	return result, true, <-wrote == nil && reusable
}

// receive reads the answer to a request that has begun.
func (p *post) receive(ctx context.Context, k *conn) (result Result, reusable bool) {
	response, err := k.answer()
	if err != nil {
		if k.late {
			err = os.ErrDeadlineExceeded
		}
		return Result{Outcome: Unknown, Err: p.failure(ctx, "after the request began to be sent", err)}, false
	}
	result, whole := p.answer(ctx, response)
	return result, whole && !response.Close && !k.unread()
}

// failure names the target and the moment. What ended the context says more than
// the broken connection that followed.
func (p *post) failure(ctx context.Context, when string, err error) error {
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrTimeout
	}
	return p.client.hide(fmt.Errorf("post to %s: %s: %w", p.client.target, when, err))
}
