package services

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"rabbitonce/proxy/internal/testkit"
)

//go:embed testdata
var testdata embed.FS

// What all servers are given alike.
const (
	workers   = 4               // requests at once
	keepAlive = time.Second     // when an idle connection is closed
	timeLimit = 6 * time.Second // of a request
)

// host is one server of a kind: its programs, the folder that they have for themselves, and the journal of the service.
type host struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	addr    string // 127.0.0.1:PORT, of what rabbitonce speaks to
	url     string
	journal journal

	keepers []*keeper // the last is the one at addr
	reload  func() error
}

// newHost returns a host that runs nothing yet.
func newHost(t *testing.T) *host {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "rabbitonce-services-") // a short name: there are Unix sockets in it
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, ctx: ctx, dir: dir, journal: journal{filepath.Join(dir, "journal")}}
	t.Cleanup(h.close)
	h.addr = h.reserve()
	h.url = "http://" + h.addr
	h.write("journal", "")
	return h
}

func (h *host) reserve() string {
	h.t.Helper()
	addr, release, err := testkit.ReserveAddr()
	h.must(err)
	h.t.Cleanup(release)
	return addr
}

func (h *host) close() {
	for _, k := range h.keepers {
		h.check(k.close())
		if h.t.Failed() {
			h.logEnd(k.options)
		}
	}
	h.check(os.RemoveAll(h.dir))
}

func (h *host) logEnd(options testkit.ProgramOptions) {
	text, _ := os.ReadFile(options.LogPath)
	const end = 4000
	h.t.Logf("the end of the log of %s:\n%s", options.Name, text[max(0, len(text)-end):])
}

// run starts a program that listens at addr, or makes that socket, once it is ready.
func (h *host) run(name, path, addr string, env map[string]string, args ...string) *keeper {
	h.t.Helper()
	return h.keep(testkit.ProgramOptions{Name: name, Path: path, Args: args, Env: env}, addr)
}

// runLeader is run for a program that has to lead its process group, see testkit.
func (h *host) runLeader(name, path, addr string, args ...string) *keeper {
	h.t.Helper()
	return h.keep(testkit.ProgramOptions{Name: name, Path: path, Args: args, Leads: true}, addr)
}

func (h *host) keep(options testkit.ProgramOptions, addr string) *keeper {
	h.t.Helper()
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": h.dir, "TMPDIR": h.dir, "JOURNAL": h.journal.path, "LANG": "C.UTF-8"}
	maps.Copy(all, options.Env)
	options.Env, options.Dir, options.LogPath = all, h.dir, filepath.Join(h.dir, options.Name+".log")
	k := &keeper{ctx: h.ctx, ready: func() error { return answers(addr) }, options: options, deaths: make(chan struct{}, 100)}
	h.keepers = append(h.keepers, k)
	h.must(k.start())
	return k
}

// answers asks a server that listens at an address whether it serves; or looks for a Unix socket by its path.
func answers(addr string) error {
	if strings.HasPrefix(addr, "/") {
		_, err := os.Stat(addr)
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	response, err := client.Get("http://" + addr + "/ready")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %d %s", response.StatusCode, text)
	}
	return err
}

// write puts a file into the folder and returns its path.
func (h *host) write(name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	h.must(os.WriteFile(path, []byte(content), 0o644))
	return path
}

// copy puts a file of testdata into the folder and returns its path.
func (h *host) copy(name string) string {
	h.t.Helper()
	content, err := testdata.ReadFile("testdata/" + name)
	h.must(err)
	return h.write(name, string(content))
}

// settings is what configuration files are made with.
type settings struct {
	Dir, Addr, Journal string
	Root               bool // the tests run as root, and so may, or must, name the user of workers
	Workers            int
	KeepAlive          string   // 1000ms
	TimeLimit          string   // 3s
	Backends           []string // addresses behind a front
	Modules            string   // Apache's
}

// configure puts a configuration file of testdata, filled in, into the folder and returns its path.
func (h *host) configure(name string, backends ...string) string {
	h.t.Helper()
	parsed, err := template.ParseFS(testdata, "testdata/"+name)
	h.must(err)
	var text strings.Builder
	h.must(parsed.ExecuteTemplate(&text, name, settings{
		Dir: h.dir, Addr: h.addr, Journal: h.journal.path, Root: os.Geteuid() == 0, Workers: workers,
		KeepAlive: fmt.Sprintf("%dms", keepAlive.Milliseconds()), TimeLimit: timeLimit.String(),
		Backends: backends, Modules: apacheModules,
	}))
	return h.write(name, text.String())
}

// signal tells a program, and returns once its log says these words once more.
func (h *host) signal(k *keeper, s syscall.Signal, words string) error {
	said := func() (int, error) {
		text, err := os.ReadFile(k.options.LogPath)
		return strings.Count(string(text), words), err
	}
	return k.do(func(p *testkit.Program) error {
		before, err := said()
		if err != nil {
			return err
		}
		if err := p.Signal(s); err != nil {
			return err
		}
		return p.Await(h.ctx, func() error {
			now, err := said()
			if err == nil && now == before {
				err = errors.New("its log does not say " + words)
			}
			return err
		})
	})
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) check(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Error(err)
	}
}
