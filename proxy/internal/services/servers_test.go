package services

import "testing"

// scenario is a day in the life of a server.
type scenario struct {
	name string
	run  func(*testing.T, kind, *host)
}

var scenarios = []scenario{
	{"names", testNames},
	{"body", testBody},
	{"burst", testBurst},
	{"idle", testIdle},
	{"absent", testAbsent},
	{"backend", testBackend},
	{"late", testLate},
	{"killed", testKilled},
	{"killed-deadletter", testKilledDeadletter},
	{"reload", testReload},
	{"reload-closing", testReloadClosing},
}

// TestServers takes each server through all scenarios, one after the other.
func TestServers(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			k.start(h)
			for _, s := range scenarios {
				t.Run(s.name, func(t *testing.T) { s.run(t, k, h) })
			}
		})
	}
}
