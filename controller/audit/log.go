package audit

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/kvap/kvap/diag"
	"github.com/kvap/kvap/internal/input"
)

// longestLine is how many bytes a line has at most that is read. An event at the level
// RequestResponse has an object twice.
const longestLine = 8 << 20

// Options say what becomes of a log.
type Options struct {
	File string
	// Every is how often it is looked for new lines.
	Every   time.Duration
	Natives NativePolicies
	Tell    func(Decision)
	// Created takes the AdmissionRequest, as JSON, of each object that was created and is in the log, as
	// it is where the log has the level Request. nil takes none.
	Created func(ctx context.Context, request map[string]any)
	// Register takes the metrics.
	Register prometheus.Registerer
	Log      logr.Logger
}

// A Log is followed, and what native policies decided is told.
type Log struct {
	options Options
	lines   *input.Tail // nil while there is no file
	counts  *prometheus.CounterVec
	failing bool // to read it, which was logged
}

// What is counted of a log.
const (
	countRead    = "read"    // a line
	countBad     = "bad"     // a line that is no event
	countLong    = "long"    // a line beyond the limit
	countUnknown = "unknown" // an event of which it is not known what it is about
	countLost    = "lost"    // a log that was rotated away before it was read to its end
)

// New makes a log. What is in the file already is passed over.
func New(o Options) (*Log, error) {
	l := &Log{options: o, counts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kvap_audit_log_lines_total",
		Help: "Lines of the audit log by what became of them: read, bad (no event), long (beyond 8 MiB), unknown (what it is about is not known); and lost, for a log that was rotated away before its end was read.",
	}, []string{"result"})}
	for _, result := range []string{countRead, countBad, countLong, countUnknown, countLost} {
		l.counts.WithLabelValues(result)
	}
	before := prometheus.AlreadyRegisteredError{}
	if err := o.Register.Register(l.counts); errors.As(err, &before) {
		l.counts, _ = before.ExistingCollector.(*prometheus.CounterVec)
	} else if err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.File); errors.Is(err, fs.ErrNotExist) {
		return l, nil // all that will be in it is new
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, l.lines.ToEnd()
}

func (l *Log) open() error {
	lines, err := input.NewTail([]string{l.options.File}, nil)
	if err != nil {
		return err
	}
	count := func(result string) func(string) { return func(string) { l.counts.WithLabelValues(result).Inc() } }
	lines.Longest, lines.Long, lines.Lost = longestLine, count(countLong), count(countLost)
	l.lines = lines
	return nil
}

// Run follows the log until the context ends. That it cannot be read is logged, and tried again.
func (l *Log) Run(ctx context.Context) {
	l.options.Log.Info("following the audit log", "file", l.options.File)
	for ctx.Err() == nil {
		err := l.look(ctx)
		if failing := err != nil && ctx.Err() == nil; failing != l.failing {
			if l.failing = failing; failing {
				l.options.Log.Error(err, "the audit log cannot be read, and is tried again", "file", l.options.File)
			} else {
				l.options.Log.Info("the audit log is read again", "file", l.options.File)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(l.options.Every):
		}
	}
}

// look reads what is new.
func (l *Log) look(ctx context.Context) error {
	if l.lines == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	return l.lines.Each(false, func(line []byte, at diag.Pos) bool {
		l.counts.WithLabelValues(countRead).Inc()
		l.line(ctx, line, at)
		return ctx.Err() == nil
	})
}

// line tells what one line says. Most are about requests that no native policy had anything against:
// these are not decoded.
func (l *Log) line(ctx context.Context, line []byte, at diag.Pos) {
	if !bytes.HasPrefix(line, []byte("{")) || !bytes.HasSuffix(line, []byte("}")) {
		l.passOver(countBad, errors.New("the line is no JSON object"), at)
		return
	}
	created := l.options.Created != nil && bytes.Contains(line, []byte(`"verb":"create"`)) && bytes.Contains(line, []byte(`"requestObject":`))
	if !created && !bytes.Contains(line, []byte(FailureKey)) && !bytes.Contains(line, []byte("denied request: ")) {
		return
	}
	e, err := ReadEvent(line)
	if err != nil {
		l.passOver(countBad, err, at)
		return
	}
	if !e.Ends() {
		return
	}
	said, err := decisions(ctx, e, l.options.Natives)
	if err != nil {
		l.passOver(countUnknown, err, at)
	}
	for _, d := range said {
		l.options.Tell(d)
	}
	if created && e.creates() && !e.dryRun() {
		request, err := e.Created(e.RequestObject)
		if err != nil {
			l.passOver(countBad, err, at)
			return
		}
		l.options.Created(ctx, request)
	}
}

func (l *Log) passOver(result string, err error, at diag.Pos) {
	l.counts.WithLabelValues(result).Inc()
	l.options.Log.V(1).Info("a line of the audit log is passed over", "at", at.String(), "reason", err.Error())
}
