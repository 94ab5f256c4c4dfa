package incluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/kvap/kvap/controller"
	"github.com/kvap/kvap/webhook/certs"
	"github.com/kvap/kvap/webhook/endpoint"
	"github.com/kvap/kvap/webhook/world"
)

// Options say what runs beside the controller.
type Options struct {
	Controller   controller.Options
	Webhook      Webhook
	Cleanup      Cleaning
	CleanupLimit int // how many objects one run of a cleanup policy deletes at most; 0 for no limit
}

// A Webhook is the options of the embedded webhook, and of what rules look up with it or without.
type Webhook struct {
	endpoint.Endpoint
	Certificates    string        // a folder of them, in place of an authority of kvap's own
	Validity        time.Duration // of that authority
	Owner           string        // a ClusterRole with which the configurations go
	ClientCA        string        // a file with who signs the certificates of those who may ask
	ClientNames     []string      // those that such a certificate may have
	ExcludeGroups   []string      // whose requests are not judged
	Services        []string      // URLs below which rules may ask
	Registries      []string      // that rules may ask for images
	LocalRegistries bool          // also those of this machine
	TrustFile       string        // whom keyless signatures are trusted by; "" for the public Sigstore
	TrustDigests    []string      // the hashes, one of which the file must have; none for any file
	TUFMirror       string        // a TUF repository that says it in place of a file
	TUFRoot         string        // a file with the root.json that the repository is held to
	TUFCache        string        // a folder for what it answered
	BindRepository  bool          // signatures count only if they name the repository of the image
}

// Check tells what is wrong with the options, by the flags that say so.
func (o Webhook) Check() error {
	switch {
	case !o.Enabled():
		return nil
	case len(o.ClientNames) > 0 && o.ClientCA == "":
		return errors.New("--webhook-client-names needs --webhook-client-ca")
	}
	if err := o.checkTrust(); err != nil {
		return err
	}
	if err := o.Endpoint.Check(); err != nil {
		return err
	}
	if o.Validity != 0 && o.Validity < certs.MinValidity {
		return fmt.Errorf("--webhook-certs-validity %v: want %v at least", o.Validity, certs.MinValidity)
	}
	return nil
}

// apiCallToken is the file with the token that services are asked with.
const apiCallToken = "/var/run/secrets/kvap/apicall/token"

// world is what rules look up; live where the API server is asked each time.
func (o Webhook) world(ctx context.Context, config *rest.Config, namespace string, live bool, asked func(world.Asked), log logr.Logger) (*world.World, error) {
	formats, err := builtinFormats()
	if err != nil {
		return nil, err
	}
	trust, err := o.trust(ctx, log)
	if err != nil {
		return nil, err
	}
	return world.New(config, world.Options{
		Formats: formats, Asked: asked, Services: o.Services, TokenFile: apiCallToken, Live: live,
		Registries: o.Registries, LocalRegistries: o.LocalRegistries, SigstoreTrust: trust, BindRepository: o.BindRepository, RegistrySecrets: namespace,
	})
}

// Run runs the controller, with the webhook beside it if one is wanted. Both end
// when one does.
func Run(ctx context.Context, config *rest.Config, o Options, log logr.Logger) error {
	c := o.Controller
	if !o.Webhook.Enabled() {
		if c.Reports != "" {
			live, err := o.Webhook.world(ctx, config, c.Namespace, true, nil, log)
			if err != nil {
				return err
			}
			c.World = live
		}
		c.Leading = o.cleaning(ctx, config, nil, log)
		return controller.Run(ctx, config, c, log)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served, wait, err := startWebhook(ctx, config, o.Webhook, c.Namespace, log)
	if err != nil {
		return err
	}
	c.WebhookOwner, c.World, c.Fallback = o.Webhook.Owner, served.world, served
	c.Leading = append(o.cleaning(ctx, config, served.world, log), served.work.run)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- wait()
	}()
	err = controller.Run(ctx, config, c, log)
	cancel()
	return errors.Join(err, <-ended)
}
