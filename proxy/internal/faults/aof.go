package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rabbitonce/proxy/internal/faults/check"
	"rabbitonce/proxy/internal/testkit"
)

// storeLog reads the store's append-only file: every change, in the order in which the store made it.
type storeLog struct {
	files string // a pattern; the last one that fits is written
	read  int64  // bytes that were read before
}

func newStoreLog(r *testkit.Redis) *storeLog {
	return &storeLog{files: filepath.Join(filepath.Dir(r.LogPath), "appendonlydir", "appendonly.aof.*.incr.aof")}
}

// take returns the changes since the last time. ids tells whose a key is.
func (l *storeLog) take(ids map[string]check.ID) ([]check.Write, error) {
	names, err := filepath.Glob(l.files)
	if err != nil {
		return nil, fmt.Errorf("read the store's log: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("read the store's log: no %s", l.files)
	}
	text, err := os.ReadFile(slices.Max(names))
	if err != nil {
		return nil, fmt.Errorf("read the store's log: %w", err)
	}
	fresh := text[l.read:]
	l.read = int64(len(text))
	writes, err := parseLog(fresh, ids)
	if err != nil {
		return nil, fmt.Errorf("read the store's log: %w", err)
	}
	return writes, nil
}

func parseLog(text []byte, ids map[string]check.ID) ([]check.Write, error) {
	in := bufio.NewReader(bytes.NewReader(text))
	var writes []check.Write
	var last time.Time
	for {
		words, err := readCommand(in)
		if errors.Is(err, io.EOF) {
			return writes, nil
		}
		if err != nil {
			return nil, err
		}
		if len(words) < 2 {
			continue // MULTI, EXEC
		}
		id, ours := ids[words[1]]
		if !ours {
			continue
		}
		w, err := parseWrite(words)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", words, err)
		}
		if w.At.IsZero() {
			w.At = last // what has no time of its own
		}
		w.ID, last = id, w.At
		writes = append(writes, w)
	}
}

// readCommand reads one command: an array of strings, as in the protocol of Redis.
func readCommand(in *bufio.Reader) ([]string, error) {
	count, err := readNumber(in, '*')
	if err != nil {
		return nil, err
	}
	words := make([]string, count)
	for i := range words {
		size, err := readNumber(in, '$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2) // with the line's end
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

func readNumber(in *bufio.Reader, mark byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != mark {
		return 0, fmt.Errorf("%q where %q should be", line, mark)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// parseWrite reads SET key record [NX] PXAT milliseconds, or DEL key.
func parseWrite(words []string) (check.Write, error) {
	switch {
	case strings.EqualFold(words[0], "DEL"):
		return check.Write{State: check.Absent}, nil
	case strings.EqualFold(words[0], "SET") && len(words) >= 5:
		w, err := parseRecord(words[2])
		if err != nil {
			return check.Write{}, err
		}
		expires, err := strconv.ParseInt(words[len(words)-1], 10, 64)
		if err != nil {
			return check.Write{}, err
		}
		if w.State != check.Waiting { // its expiry is later by the wait
			w.At = time.UnixMilli(expires).Add(-retention)
		}
		return w, nil
	}
	return check.Write{}, errors.New("an unexpected command")
}

// parseRecord reads the beginning of a record, whose form docs/protocol.md has.
func parseRecord(text string) (check.Write, error) {
	const head, counters = 12, 17
	if len(text) < counters {
		return check.Write{}, errors.New("no record")
	}
	states := map[byte]check.State{'p': check.Processing, 'w': check.Waiting, 'd': check.Done, 'x': check.Dead}
	const upper = 'a' - 'A'
	w := check.Write{State: states[text[0]|upper], Unknown: text[0]&upper == 0}
	switch w.State {
	case check.Processing, check.Waiting, check.Dead:
		w.Attempts = int(binary.BigEndian.Uint16([]byte(text[head:])))
	case check.Done:
	default:
		return check.Write{}, errors.New("a record in no known state")
	}
	if w.State == check.Processing {
		if len(text) < counters+16 {
			return check.Write{}, errors.New("a claim without a token")
		}
		w.Token = hex.EncodeToString([]byte(text[counters : counters+16]))
	}
	return w, nil
}
