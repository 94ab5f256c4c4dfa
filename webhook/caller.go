package webhook

import (
	"crypto/tls"
	"net/http"
	"slices"
)

// tlsConfig asks for a certificate of whoever asks, where one is wanted. Who has none is
// answered about the health of the server, and about nothing else.
func (s *Server) tlsConfig() *tls.Config {
	out := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: s.options.Certificate}
	if s.options.ClientCAs != nil {
		out.ClientCAs, out.ClientAuth = s.options.ClientCAs, tls.VerifyClientCertIfGiven
	}
	return out
}

// isAPIServer tells that a request comes from whom the certificates let ask.
func (s *Server) isAPIServer(r *http.Request) bool {
	if s.options.ClientCAs == nil {
		return true
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	leaf := r.TLS.VerifiedChains[0][0]
	return len(s.options.ClientNames) == 0 || slices.ContainsFunc(append([]string{leaf.Subject.CommonName}, leaf.DNSNames...), func(name string) bool {
		return slices.Contains(s.options.ClientNames, name)
	})
}
