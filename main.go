// Command rabbitonce is a sidecar between RabbitMQ and an HTTP service: one successful execution per message ID.
package main

import (
	"context"
	"os"

	"rabbitonce/proxy"
)

// version is set by the build: -ldflags "-X main.version=1.2.3".
var version = "dev"

func main() {
	os.Exit(proxy.Execute(context.Background(), version, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}
