package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rabbitonce/dedup"
)

// storePatience bounds what a command asks of the store.
const storePatience = 10 * time.Second

// recordQuery is what `inspect QUEUE ID` and `forget QUEUE ID` are asked for: the records of one message ID, which is
// looked for wherever DEDUP_ID_FROM can have found it.
type recordQuery struct {
	queue QueueConfig
	id    string
	ids   []dedup.ID
	store *dedup.Store
}

// recordPlace is one key of a query and what it holds.
type recordPlace struct {
	source   string // where the ID was found, as in DEDUP_ID_FROM
	key      string
	sighting dedup.Sighting
	foreign  error // the key holds something that is no record
}

// openQuery reads the command line and the environment. Its errors are for the person who typed; the caller closes the
// store.
func openQuery(c *invocation, source string) (*recordQuery, error) {
	cfg, err := Load(c.environ, c.version)
	if err != nil {
		return nil, err
	}
	q := &recordQuery{id: c.args[1]}
	if q.queue, err = cfg.queueNamed(c.args[0]); err != nil {
		return nil, err
	}
	if err := dedup.CheckID(q.id); err != nil {
		return nil, errUsage{err.Error()}
	}
	q.ids = q.queue.Dedup.Candidates(q.id)
	if source != "" {
		id, err := q.queue.Dedup.Candidate(source, q.id)
		if err != nil {
			return nil, errUsage{"--source: " + err.Error()}
		}
		q.ids = []dedup.ID{id}
	}
	if cfg.Dedup.Store == dedup.StoreMemory {
		return nil, errUsage{"DEDUP_STORE=memory: the records are in the memory of the running process, and no other process can see or change them"}
	}
	q.store, err = openStore(cfg.Dedup, cfg.reload)
	return q, err
}

// queueNamed returns the settings of one of QUEUES.
func (c *Config) queueNamed(name string) (QueueConfig, error) {
	for _, q := range c.Queues {
		if q.Name == name {
			return q, nil
		}
	}
	return QueueConfig{}, errUsage{fmt.Sprintf("%q is none of QUEUES (%s)", name, strings.Join(c.QueueNames, ", "))}
}

// look visits every place. The error is the store's.
func (q *recordQuery) look(ctx context.Context) ([]recordPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	var all []recordPlace
	for _, id := range q.ids {
		p := recordPlace{source: q.queue.Dedup.Place(id), key: dedup.Key(q.queue.Dedup.Prefix, q.queue.Dedup.Consumer, id)}
		var err error
		p.sighting, err = q.store.Look(ctx, p.key)
		if errors.Is(err, dedup.ErrForeignRecord) {
			p.foreign, err = err, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// taken are the places that hold something.
func taken(all []recordPlace) []recordPlace {
	var some []recordPlace
	for _, p := range all {
		if p.sighting.Found || p.foreign != nil {
			some = append(some, p)
		}
	}
	return some
}
