package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// health serves probes, status and metrics. It is read-only and shows no payloads.
type health struct {
	server   *http.Server
	listener net.Listener
	done     chan struct{} // closed when the server has ended
}

// listenHealth opens the listener and serves at once: probes pass before anything else is connected.
func listenHealth(addr string, p *Proxy, metrics prometheus.Gatherer, log *slog.Logger) (*health, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("HEALTH_ADDR: listen: %w", err)
	}
	h := &health{listener: l, done: make(chan struct{}), server: &http.Server{
		Handler: healthRoutes(p, metrics), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	go func() { defer close(h.done); _ = h.server.Serve(l) }()
	return h, nil
}

func healthRoutes(p *Proxy, metrics prometheus.Gatherer) http.Handler {
	r := chi.NewRouter()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
	r.Get("/livez", ok)
	r.Get("/startupz", ok) // depends on nothing: a native sidecar starts before its service
	r.Get("/readyz", p.serveReady)
	r.Get("/status", p.serveStatus)
	r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return r
}

// serveReady fails only while draining: a sidecar's readiness is its pod's, and an outage of the broker must not take
// the service off its own traffic.
func (p *Proxy) serveReady(w http.ResponseWriter, _ *http.Request) {
	if p.draining.Load() {
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func (p *Proxy) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(p.Status())
}

// close ends the listener, last of all.
func (h *health) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if h.server.Shutdown(ctx) != nil {
		_ = h.server.Close()
	}
	<-h.done
}

// Healthcheck asks the process that runs with the same environment whether it is alive, for images without a shell.
func Healthcheck(environ []string) error {
	env := newEnvironment(environ)
	cfg := &Config{}
	env.decode(cfg)
	host, port, err := net.SplitHostPort(cfg.HealthAddr)
	if err != nil {
		return fmt.Errorf("HEALTH_ADDR: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // a scratch image has no /etc/hosts to look localhost up in
	}
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{Proxy: nil}}
	res, err := client.Get("http://" + net.JoinHostPort(host, port) + "/livez")
	if err != nil {
		return fmt.Errorf("healthcheck: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("healthcheck: %s", res.Status)
	}
	return nil
}
