package dedup

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates for one test.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	file        string
}

func newAuthority(t *testing.T, dir, name string) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(dir, name+".pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.certificate, a.key = sign(t, template, template, nil)
	writePEM(t, a.file, "CERTIFICATE", a.certificate.Raw)
	return a
}

// issue writes name.crt and name.key for the names.
func (a *authority) issue(t *testing.T, dir, name string, names ...string) (cert, key string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, private := sign(t, template, a.certificate, a.key)
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	writePEM(t, cert, "CERTIFICATE", certificate.Raw)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, key, "PRIVATE KEY", encoded)
	return cert, key
}

// sign signs with the parent's key, or a certificate by itself.
func sign(t *testing.T, template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func writePEM(t *testing.T, file, kind string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newTLSServer listens for TLS on its own port and for plain text on its
// socket, and wants a client certificate of the authority.
func newTLSServer(t *testing.T, dir string, a *authority) *redisServer {
	t.Helper()
	cert, key := a.issue(t, dir, "server", "redis.example.com")
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t,
		"--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", a.file, "--tls-auth-clients", "yes")
	return &redisServer{address: "127.0.0.1:" + port, dir: s.dir}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	ours, foreign := newAuthority(t, dir, "ours"), newAuthority(t, dir, "foreign")
	server := newTLSServer(t, dir, ours)
	cert, key := ours.issue(t, dir, "client")
	_, port, _ := net.SplitHostPort(server.address)
	for name, test := range map[string]struct {
		url, ca, cert, key, serverName string
		want                           string // "": it works
	}{
		"all as it should be":     {"rediss://127.0.0.1:" + port, ours.file, cert, key, "", ""},
		"a name of its own":       {"rediss://127.0.0.1:" + port, ours.file, cert, key, "redis.example.com", ""},
		"another name":            {"rediss://127.0.0.1:" + port, ours.file, cert, key, "other.example.com", "not other.example.com"},
		"not checked":             {"rediss://127.0.0.1:" + port + "?skip_verify=true", "", cert, key, "", ""},
		"the system's":            {"rediss://127.0.0.1:" + port, "", cert, key, "", "unknown authority"},
		"another authority":       {"rediss://127.0.0.1:" + port, foreign.file, cert, key, "", "unknown authority"},
		"no certificate":          {"rediss://127.0.0.1:" + port, ours.file, "", "", "", "certificate required|redis closed the connection"},
		"plain text to that port": {"redis://127.0.0.1:" + port, "", "", "", "", "redis closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, Config{
				Store: StoreRedis, RedisURL: Secret(test.url),
				RedisTLSCAFile: test.ca, RedisTLSCertFile: test.cert, RedisTLSKeyFile: test.key, RedisTLSServerName: test.serverName,
			})
			c, err := s.Claim(context.Background(), request(testKey(t)))
			switch {
			case test.want == "" && (err != nil || c.Verdict != Claimed):
				t.Errorf("claim: %v, %v", c.Verdict, err)
			case test.want != "":
				wantError(t, "claim", err, test.want)
			}
		})
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	ours, foreign := newAuthority(t, dir, "ours"), newAuthority(t, dir, "foreign")
	server := newTLSServer(t, dir, ours)
	cert, key := foreign.issue(t, dir, "client")
	s := openStore(t, Config{
		Store: StoreRedis, RedisURL: Secret("rediss://" + server.address),
		RedisTLSCAFile: ours.file, RedisTLSCertFile: cert, RedisTLSKeyFile: key,
	})
	r := request(testKey(t))
	_, err := s.Claim(context.Background(), r)
	wantError(t, "with a certificate of another authority", err, "unknown certificate authority|redis closed the connection")
	ours.issue(t, dir, "client") // the same files
	if c, err := s.Claim(context.Background(), r); err != nil || c.Verdict != Claimed {
		t.Errorf("with a certificate that was replaced: %v, %v", c.Verdict, err)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	s.backend.(*redisBackend).leave("")
	_, err = s.Claim(context.Background(), r)
	wantError(t, "without the file", err, "REDIS_TLS_CERT_FILE")
}

func TestTLSFilesAreCheckedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	a := newAuthority(t, dir, "authority")
	cert, key := a.issue(t, dir, "client")
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		cfg  Config
		want string // the problems' variables
	}{
		"fine":                      {Config{RedisTLSCAFile: a.file, RedisTLSCertFile: cert, RedisTLSKeyFile: key}, ""},
		"no such file":              {Config{RedisTLSCAFile: dir + "/none", RedisTLSCertFile: cert, RedisTLSKeyFile: key}, "REDIS_TLS_CA_FILE"},
		"no certificate in it":      {Config{RedisTLSCAFile: empty}, "REDIS_TLS_CA_FILE"},
		"a certificate and no key":  {Config{RedisTLSCertFile: cert}, "REDIS_TLS_CERT_FILE"},
		"a key and no certificate":  {Config{RedisTLSKeyFile: key}, "REDIS_TLS_KEY_FILE"},
		"one for the other":         {Config{RedisTLSCertFile: key, RedisTLSKeyFile: cert}, "REDIS_TLS_CERT_FILE"},
		"everything wrong, at once": {Config{RedisTLSCAFile: empty, RedisTLSKeyFile: key, WaitReplicas: -1}, "DEDUP_WAIT_REPLICAS REDIS_TLS_CA_FILE REDIS_TLS_KEY_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			test.cfg.Store, test.cfg.RedisURL = StoreRedis, "rediss://host"
			var got []string
			for _, problem := range test.cfg.Validate() {
				name, _, _ := strings.Cut(problem.Error(), ":")
				name, _, _ = strings.Cut(name, ",")
				got = append(got, name)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
		})
	}
}
