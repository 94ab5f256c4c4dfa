package incluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"

	"github.com/kvap/kvap/images"
)

// checkTrust tells what is wrong with the options about whom keyless signatures are trusted by.
func (o Webhook) checkTrust() error {
	switch {
	case len(o.TrustDigests) > 0 && o.TrustFile == "":
		return errors.New("--sigstore-trusted-root-digest needs --sigstore-trusted-root")
	case o.TUFMirror != "" && o.TrustFile != "":
		return errors.New("--sigstore-tuf-mirror and --sigstore-trusted-root: want one of them")
	case (o.TUFMirror == "") != (o.TUFRoot == "") || (o.TUFMirror == "") != (o.TUFCache == ""):
		return errors.New("want --sigstore-tuf-mirror, --sigstore-tuf-root and --sigstore-tuf-cache together, or none of them")
	}
	return nil
}

// trust is whom keyless signatures are trusted by: a file is read again when it changes, and a TUF
// repository is asked again until ctx ends. It is nil for the public Sigstore.
func (o Webhook) trust(ctx context.Context, log logr.Logger) (func() *images.Trust, error) {
	if err := o.checkTrust(); err != nil || o.TrustFile == "" && o.TUFMirror == "" {
		return nil, err
	}
	counter, err := trustMetrics()
	if err != nil {
		return nil, err
	}
	if o.TUFMirror != "" {
		return o.mirror(ctx, counter, log.WithValues("mirror", o.TUFMirror))
	}
	trust, err := images.OpenTrust(o.TrustFile, o.TrustDigests, func(err error) {
		counter.count(err)
		if err != nil {
			log.Error(err, "The trusted root of images is not taken. The one before stays in force.", "file", o.TrustFile)
			return
		}
		log.Info("read the trusted root of images", "file", o.TrustFile)
	})
	if err != nil {
		return nil, fmt.Errorf("--sigstore-trusted-root: %w", err)
	}
	return trust.Trust, nil
}

// firstAnswer is how long the start waits for a TUF repository. After that the webhook goes
// without it, by what is in the folder.
const firstAnswer = 5 * time.Second

func (o Webhook) mirror(ctx context.Context, counter trustCounter, log logr.Logger) (func() *images.Trust, error) {
	root, err := os.ReadFile(o.TUFRoot)
	if err != nil {
		return nil, fmt.Errorf("--sigstore-tuf-root: %w", err)
	}
	mirror, err := images.OpenMirror(images.Mirror{URL: o.TUFMirror, Root: root, Dir: o.TUFCache, Local: o.LocalRegistries}, func(read images.MirrorRead) {
		switch {
		case read.Err != nil:
			counter.count(read.Err)
			log.Error(read.Err, "The trusted root of images is not taken. The one before stays in force.")
			return
		case read.Changed:
			counter.count(nil)
			log.Info("read the trusted root of images", "until", read.Expires)
		}
		counter.expires.Set(float64(read.Expires.Unix()))
	})
	if err != nil {
		return nil, fmt.Errorf("--sigstore-tuf-mirror: %w", err)
	}
	first, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	_ = mirror.Refresh(first) // it is told
	go mirror.Run(ctx)
	return mirror.Trust, nil
}
