package proxy

import (
	"context"
	"fmt"

	"rabbitonce/dedup"
)

// openStore opens the claim store. User and password are read again at each new connection.
func openStore(cfg dedup.Config, reload func() (*Config, error), options ...dedup.Option) (*dedup.Store, error) {
	cfg.Credentials = func(context.Context) (string, string, error) {
		now, err := reload()
		if err != nil {
			return "", "", fmt.Errorf("read credentials again: %w", err)
		}
		return now.Dedup.Login()
	}
	store, err := dedup.New(cfg, options...)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return store, nil
}
