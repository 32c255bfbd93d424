package dedup

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// TLSFiles are what a TLS connection is made with, to the store or to whatever
// else the process speaks to. The files are read for each connection, so that a
// certificate can be replaced while the process runs.
type TLSFiles struct {
	Variables  string // how the variables begin that name the files, such as REDIS_TLS
	CA         string // path; "": the system's authorities
	Cert, Key  string // paths; "": no certificate of our own
	ServerName string // "": the host that is dialed
	Unverified bool   // the server's certificate is not checked
}

// Load returns the configuration of one connection to a host:port.
func (f *TLSFiles) Load(address string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName, InsecureSkipVerify: f.Unverified}
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

// IsZero tells whether no file and no name is set.
func (f *TLSFiles) IsZero() bool {
	return f.CA == "" && f.Cert == "" && f.Key == "" && f.ServerName == ""
}

// Check returns every problem of the files. Each text begins with a variable.
func (f *TLSFiles) Check() []error {
	var problems []error
	if _, err := f.authorities(); err != nil {
		problems = append(problems, err)
	}
	switch {
	case f.Cert != "" && f.Key == "":
		problems = append(problems, fmt.Errorf("%s_CERT_FILE: needs %[1]s_KEY_FILE too", f.Variables))
	case f.Cert == "" && f.Key != "":
		problems = append(problems, fmt.Errorf("%s_KEY_FILE: needs %[1]s_CERT_FILE too", f.Variables))
	default:
		if _, err := f.certificates(); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

// authorities returns nil for the system's.
func (f *TLSFiles) authorities() (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("%s_CA_FILE: %w", f.Variables, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New(f.Variables + "_CA_FILE: holds no PEM certificate")
	}
	return pool, nil
}

func (f *TLSFiles) certificates() ([]tls.Certificate, error) {
	if f.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("%s_CERT_FILE, %[1]s_KEY_FILE: %w", f.Variables, err)
	}
	return []tls.Certificate{pair}, nil
}
