package world

import (
	"encoding/pem"
	"net/http/httptest"
)

// pemOf is what a server's certificate is trusted by.
func pemOf(s *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
