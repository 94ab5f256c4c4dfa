// Command benchwebhook measures what the webhook costs: latency, throughput, memory
// and processor time, over TLS on loopback, with many clients at once.
//
// The server is a process of its own, this program again, so that what it uses can be
// told from what the clients use. Clients are closed loops over HTTP/1.1, as the API
// server's are: each sends when it was answered, at once or after a pause. A run is
// bounded in requests and in time.
//
// Start reading at main.go; policies.yaml is what is judged by.
package main
