package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/kvap/kvap/internal/incluster"
)

// addWebhook adds the flags of the embedded webhook.
func addWebhook(fs *pflag.FlagSet, f *incluster.Webhook) {
	fs.StringVar(&f.Address, "webhook-address", "0", "where the webhook listens that serves rules without a native form, for instance :9443; 0 for nowhere")
	fs.StringVar(&f.Service, "webhook-service", "", "the service of the webhook, as name or namespace/name; port 443")
	fs.StringVar(&f.URL, "webhook-url", "", "where the API server finds the webhook, in place of a service: https://HOST:PORT")
	fs.StringVar(&f.Certificates, "webhook-certs", "", "a folder with tls.crt, tls.key and ca.crt, as cert-manager writes it, in place of kvap's own authority")
	fs.DurationVar(&f.Validity, "webhook-certs-validity", 365*24*time.Hour, "how long kvap's own authority is valid; certificates are for a quarter of it, and all are renewed in time")
	fs.StringVar(&f.Owner, "webhook-owner", "", "a ClusterRole: when it is deleted, as kvap is uninstalled, the webhook configurations go with it")
	fs.StringVar(&f.ClientCA, "webhook-client-ca", "", "a file with who signs the client certificate of the API server; who shows none is not answered. None is asked for by default")
	fs.StringSliceVar(&f.ClientNames, "webhook-client-names", nil, "the names that such a certificate may have; any by default")
	fs.StringSliceVar(&f.ExcludeGroups, "webhook-exclude-groups", []string{"system:nodes"}, "groups whose users the webhook does not judge")
	fs.StringSliceVar(&f.Services, "apicall-services", nil, "URLs below which rules may ask services; none by default")
	fs.StringSliceVar(&f.Registries, "image-registries", nil, "registries, perhaps with a repository, that rules may ask for images; none by default")
	fs.StringVar(&f.TrustFile, "sigstore-trusted-root", "", trustedRootHelp+", read when kvap starts; that of the public Sigstore, as it was when kvap was built, by default")
	fs.BoolVar(&f.LocalRegistries, "allow-local-registries", false, "let rules that verify images ask registries at addresses of this machine and its link")
}
