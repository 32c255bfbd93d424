package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// secure turns a TCP connection to an endpoint into a TLS one, with the files as they are now.
func secure(ctx context.Context, cfg *BrokerConfig, plain net.Conn, address string) (net.Conn, error) {
	settings, err := cfg.tlsFiles().Load(address)
	if err != nil {
		return nil, trouble(endSettings, err)
	}
	secured := tls.Client(plain, settings)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, trouble(endTLS, fmt.Errorf("tls handshake: %w%s", err, tlsRemedy(err, settings.ServerName)))
	}
	return secured, nil
}

// tlsRemedy names the variable to look at when a handshake has failed. name is what the certificate had to be for.
func tlsRemedy(err error, name string) string {
	var (
		unknown x509.UnknownAuthorityError
		other   x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown):
		return "; set RABBITMQ_TLS_CA_FILE to the authority that signed the broker's certificate"
	case errors.As(err, &other):
		return fmt.Sprintf("; the broker's certificate is not for %s: set RABBITMQ_TLS_SERVER_NAME to a name that it is for", name)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("; the broker's certificate, or its authority in RABBITMQ_TLS_CA_FILE, was valid from %s to %s: renew it",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &record):
		return "; that port speaks no TLS: write amqp:// in RABBITMQ_URL, or the port for TLS, usually 5671"
	}
	return alertRemedy(err.Error())
}

// silentRefusal is the remedy when the broker's alert was lost with the connection: what we write meanwhile is answered
// with a reset, which overtakes it.
const silentRefusal = "; the broker may want a client certificate, or not accept ours: check RABBITMQ_TLS_CERT_FILE; its log says more"

// alertRemedy reads what the broker objects to: with TLS 1.3 its alert comes after our side of the handshake is over,
// and the AMQP library hands on only the words (https://pkg.go.dev/crypto/tls#AlertError).
func alertRemedy(words string) string {
	if !strings.Contains(words, "remote error: tls: ") {
		return ""
	}
	switch {
	case strings.Contains(words, "expired certificate"):
		return "; our certificate has expired: renew RABBITMQ_TLS_CERT_FILE"
	case strings.Contains(words, "certificate"):
		return "; the broker does not accept our certificate: check RABBITMQ_TLS_CERT_FILE and the authorities that the broker trusts"
	}
	return "; the broker refused the handshake: does it want a client certificate (RABBITMQ_TLS_CERT_FILE)? Its log says more"
}
