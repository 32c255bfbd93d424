package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates. All files are readable by everybody: a broker runs as another user.
type Authority struct {
	File string // its certificate (PEM)

	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certificate is one that an Authority has signed.
type Certificate struct {
	File, KeyFile string // PEM
}

// Holder says whom a certificate is for.
type Holder struct {
	Name    string   // the common name, and the name of the files: NAME.crt and NAME.key
	Hosts   []string // names of a server; 127.0.0.1 is always one
	Expired bool
}

// NewAuthority writes the certificate of a new authority to DIR/NAME.pem.
func NewAuthority(dir, name string) (*Authority, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a := &Authority{File: filepath.Join(dir, name+".pem"), dir: dir, certificate: template}
	certificate, key, err := a.sign(template)
	if err == nil {
		err = writePEM(a.File, "CERTIFICATE", certificate.Raw)
	}
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	a.certificate, a.key = certificate, key
	return a, nil
}

// Issue writes a certificate and its key beside the authority's; one with the same name is replaced.
func (a *Authority) Issue(h Holder) (Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: h.Name}, DNSNames: h.Hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if h.Expired {
		template.NotAfter = time.Now().Add(-time.Minute)
	}
	c := Certificate{File: filepath.Join(a.dir, h.Name+".crt"), KeyFile: filepath.Join(a.dir, h.Name+".key")}
	certificate, key, err := a.sign(template)
	if err == nil {
		err = writePEM(c.File, "CERTIFICATE", certificate.Raw)
	}
	if err == nil {
		err = writeKey(c.KeyFile, key)
	}
	if err != nil {
		return Certificate{}, fmt.Errorf("issue certificate for %s: %w", h.Name, err)
	}
	return c, nil
}

// sign signs with the authority's key, or its own certificate while it has none.
func (a *Authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	by := a.key
	if by == nil {
		by = key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, by)
	if err != nil {
		return nil, nil, err
	}
	certificate, err := x509.ParseCertificate(raw)
	return certificate, key, err
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, "PRIVATE KEY", raw)
}

// writePEM replaces a file at once, as whoever rotates certificates does.
func writePEM(file, kind string, raw []byte) error {
	temporary := file + ".new"
	if err := os.WriteFile(temporary, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
