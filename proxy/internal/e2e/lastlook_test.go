package e2e

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// protocolMistakes are what a broker's log says of a client that settles what it does not hold, or breaks the protocol otherwise.
func protocolMistakes(logPath string) ([]string, error) {
	text, err := os.ReadFile(logPath)
	if err != nil {
		return nil, err
	}
	var mistakes []string
	for line := range strings.Lines(string(text)) {
		for _, mistake := range []string{
			"unknown delivery tag", "operation basic.ack caused", "operation basic.nack caused", "FRAME_ERROR", "UNEXPECTED_FRAME", "CHANNEL_ERROR",
			"SYNTAX_ERROR", "COMMAND_INVALID", "NOT_IMPLEMENTED",
		} {
			if strings.Contains(line, mistake) {
				mistakes = append(mistakes, strings.TrimSpace(line))
				break
			}
		}
	}
	return mistakes, nil
}

// immortalRecords are the keys that would stay for ever: no record may, in no state, whatever happened in between.
func immortalRecords(ctx context.Context, url string) (keys []string, err error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	defer func() { err = errors.Join(err, client.Close()) }()
	seen := 0
	scan := client.Scan(ctx, 0, "*", 1000).Iterator()
	for scan.Next(ctx) {
		seen++
		left, err := client.TTL(ctx, scan.Val()).Result()
		if err != nil {
			return keys, err
		}
		if left == -1*time.Nanosecond { // the library's word for a key without an end
			keys = append(keys, scan.Val())
		}
	}
	if scan.Err() == nil && seen == 0 {
		return nil, errors.New("no record is left to look at: the tests have another store")
	}
	return keys, scan.Err()
}
