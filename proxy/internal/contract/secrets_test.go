package contract

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Passwords that every replica is given, each with characters that a URL cannot hold as they are.
const (
	sidecarPassword = "Kx7#sidecar/pw?"
	redisPassword   = "Kx8#redis/pw%"
	servicePassword = "Kx9#service/pw@"
	serviceUser     = "caller"
)

// oddPasswords are passwords of the broker's users by the name of what is odd about them.
func oddPasswords() map[string]string {
	return map[string]string{
		"hash": "Kp#ss71", "question": "Kp?ss72", "percent": "Kp%ss73", "slash": "Kp/ss74", "at": "Kp@ss75", "space": "Kp ss76",
		"colon": "Kp:ss77", "comma": "Kp,ss78", "utf8": "Kpäß☃79", "markup": `<Kp&>"ss80`, "backslash": `Kp\ss'81`,
	}
}

// secrets are all passwords in every form in which one could leak.
func secrets() []string {
	passwords := append(slices.Collect(maps.Values(oddPasswords())), sidecarPassword, redisPassword, servicePassword)
	var forms []string
	for _, p := range passwords {
		quoted, _ := json.Marshal(p)
		forms = append(forms, p, url.QueryEscape(p), url.PathEscape(p), strings.TrimPrefix(url.UserPassword("", p).String(), ":"),
			strings.Trim(string(quoted), `"`))
	}
	return append(forms, base64.StdEncoding.EncodeToString([]byte(serviceUser+":"+servicePassword)))
}

// assertNoSecret fails the test when a text that the program wrote or served holds a password.
func assertNoSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range secrets() {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows the password %q", where, secret)
		}
	}
}
