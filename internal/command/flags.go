package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kvap/kvap/internal/input"
	"github.com/kvap/kvap/policy"
)

// TrustedRootHelp says what a file of a trusted root is for.
const TrustedRootHelp = "a file with whom keyless signatures of images are trusted by (trusted_root.json)"

// InOrder are the flags of a command, which help lists in the order in which they are added.
func InOrder(cmd *cobra.Command) *pflag.FlagSet {
	cmd.Flags().SortFlags = false
	return cmd.Flags()
}

// AddRecursive accepts -R, for those whose fingers are used to it: folders are read
// with all that is in them anyway.
func AddRecursive(fs *pflag.FlagSet) {
	fs.BoolP("recursive", "R", true, "accepted, and always so: folders are read with all that is in them")
}

// What a flag is annotated with: the words that shells offer for it, and that it takes no others.
const (
	offered  = "offered"
	noOthers = "no others"
)

// Offer has shells offer words for a flag.
func Offer(fs *pflag.FlagSet, name string, words ...string) {
	_ = fs.SetAnnotation(name, offered, words) // it fails only for a flag that is not there
}

// AddChoice adds a flag that is one of some words, or what it is by default.
func AddChoice(fs *pflag.FlagSet, p *string, name, value, usage string, words ...string) {
	short := ""
	if name == "output" {
		short = "o"
	}
	fs.StringVarP(p, name, short, value, usage)
	Offer(fs, name, words...)
	_ = fs.SetAnnotation(name, noOthers, nil) // as in Offer
}

// CheckChoices refuses words that a flag does not take.
func CheckChoices(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand
		}
		if _, chosen := f.Annotations[noOthers]; chosen && err == nil && f.Value.String() != f.DefValue {
			_, err = input.OneOf(name, f.Value.String(), f.Annotations[offered]...)
		}
	})
	return err
}

// offerWords makes shells offer the words of a command's flags, and of those below it.
func offerWords(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if words := f.Annotations[offered]; words != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // as in Offer
		}
	})
	for _, c := range cmd.Commands() {
		offerWords(c)
	}
}

// ExcludedNamespaces reads the names of --exclude-namespaces.
func ExcludedNamespaces(names []string) ([]string, error) {
	if slices.Equal(names, []string{"none"}) {
		return []string{}, nil
	}
	if len(names) == 0 {
		return nil, errors.New("--exclude-namespaces wants names of namespaces, or none")
	}
	for i, name := range names {
		switch {
		case name == "none":
			return nil, errors.New("--exclude-namespaces none stands alone; drop it, or the other names")
		case !policy.IsLabel(name):
			return nil, fmt.Errorf("--exclude-namespaces %q: no namespace can be called that; "+
				"give names of lower-case letters, digits and '-', with commas between (there are no wildcards)", name)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("--exclude-namespaces names %s twice", name)
		}
	}
	return names, nil
}

// ExceptionNamespaces are those of --exception-namespaces; "none" and "*" stand alone.
func ExceptionNamespaces(given []string) ([]string, error) {
	if slices.Equal(given, []string{"none"}) {
		return nil, nil
	}
	for _, name := range given {
		if word := name == "none" || name == "*"; word && len(given) > 1 {
			return nil, fmt.Errorf("--exception-namespaces: %s stands alone", name)
		} else if !word && !policy.IsLabel(name) {
			return nil, fmt.Errorf("--exception-namespaces %q: no namespace can be called that", name)
		}
	}
	return given, nil
}
