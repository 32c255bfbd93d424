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
	parts   [2][]byte // of the request as it is sent; the second one is empty when all of it leaves in one write
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
	}
	reused, unread := k.used, k.unread()
	_ = k.SetDeadline(p.end) // one that fails says so when it is used
	stop := context.AfterFunc(ctx, k.interrupt)
	result, began, reusable := p.exchange(ctx, k, unread)
	switch {
	case !stop() || !reusable || k.interrupted.Load():
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

// exchange sends the request on a connection and reads the answer. unread tells that the service has said something before. began says whether a byte may have left, reusable that the
// connection may carry another request.
func (p *post) exchange(ctx context.Context, k *conn, unread bool) (result Result, began, reusable bool) {
	if unread || k.stale() {
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
	k.used = true
	var wrote written
	if p.parts[1] == nil {
		wrote.began, wrote.err = k.send(p.parts[0])
		if !wrote.began {
			return p.unsent(ctx, wrote.err), false, false
		}
		result, reusable = p.receive(ctx, k)
	} else {
		// A service may answer while the body is still being sent, and take no more of it: the answer counts.
		writing := make(chan written, 1)
		go func() {
			began, err := k.send(p.parts[0], p.parts[1])
			writing <- written{began, err}
		}()
		result, reusable = p.receive(ctx, k)
		_ = k.SetWriteDeadline(time.Unix(1, 0)) // no byte leaves any more
		if wrote = <-writing; !wrote.began {
			return p.unsent(ctx, wrote.err), false, false
		}
	}
	return result, true, reusable && wrote.err == nil
}

// written is how the sending of a request ended.
type written struct {
	began bool
	err   error
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
	return result, whole && !response.Close && k.in.Buffered() == 0
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
