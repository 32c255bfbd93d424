package dedup

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// tlsFiles are what a TLS connection is made with. The files are read for each
// connection, so that a certificate can be replaced while the process runs.
type tlsFiles struct {
	ca, cert, key string // paths; "": the system's authorities, no certificate of our own
	serverName    string // "": the host that is dialed
	unverified    bool   // the URL says skip_verify=true
}

// load returns the configuration of one connection to an address.
func (f *tlsFiles) load(address string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName, InsecureSkipVerify: f.unverified}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address)
	}
	var err error
	if config.RootCAs, err = f.authorities(); err != nil {
		return nil, err
	}
	config.Certificates, err = f.certificates()
	return config, err
}

// authorities returns nil for the system's.
func (f *tlsFiles) authorities() (*x509.CertPool, error) {
	if f.ca == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, fmt.Errorf("REDIS_TLS_CA_FILE: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("REDIS_TLS_CA_FILE: holds no PEM certificate")
	}
	return pool, nil
}

func (f *tlsFiles) certificates() ([]tls.Certificate, error) {
	if f.cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("REDIS_TLS_CERT_FILE, REDIS_TLS_KEY_FILE: %w", err)
	}
	return []tls.Certificate{pair}, nil
}

// check returns every problem of the files.
func (f *tlsFiles) check() []error {
	var problems []error
	if _, err := f.authorities(); err != nil {
		problems = append(problems, err)
	}
	switch {
	case f.cert != "" && f.key == "":
		problems = append(problems, errors.New("REDIS_TLS_CERT_FILE: needs REDIS_TLS_KEY_FILE too"))
	case f.cert == "" && f.key != "":
		problems = append(problems, errors.New("REDIS_TLS_KEY_FILE: needs REDIS_TLS_CERT_FILE too"))
	default:
		if _, err := f.certificates(); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
