package forward

import (
	"crypto/x509"
	"fmt"
	"os"
)

// readPool reads the certificates of FORWARD_TLS_CA_FILE.
func readPool(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("FORWARD_TLS_CA_FILE: read file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("FORWARD_TLS_CA_FILE: %s holds no certificate in PEM form", file)
	}
	return pool, nil
}
