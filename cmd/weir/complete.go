package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/serve/catalogue"
)

// completionTime is how long a shell waits at most for a server's catalogue.
const completionTime = time.Second

// completeFlag makes a shell complete the values of a flag.
func completeFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag, or it has a function already
	}
}

// complete suggests the next words of a question: the features of the server's catalogue and, after the first one, the
// keys that the features need.
func (q *inquiry) complete(cmd *cobra.Command, args []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	catalogue, err := q.catalogue(cmd.Context())
	if err != nil {
		cobra.CompErrorln(err.Error())
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys, names []cobra.Completion
	for _, f := range catalogue.Features {
		if !slices.Contains(args, f.Name) {
			names = append(names, cobra.CompletionWithDesc(f.Name, f.Definition))
			continue
		}
		for _, key := range f.Keys {
			if key := key.Name + "="; !slices.Contains(keys, key) && !slices.ContainsFunc(args, hasPrefix(key)) {
				keys = append(keys, key)
			}
		}
	}
	suggested := slices.DeleteFunc(append(keys, names...), func(s string) bool { return !strings.HasPrefix(s, start) })
	directive := cobra.ShellCompDirectiveNoFileComp
	if len(suggested) == 1 && slices.Contains(keys, suggested[0]) {
		directive |= cobra.ShellCompDirectiveNoSpace // the value comes next
	}
	return suggested, directive
}

// completeService suggests the server's services.
func (q *inquiry) completeService(cmd *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	catalogue, err := q.catalogue(cmd.Context())
	if err != nil {
		cobra.CompErrorln(err.Error())
	}
	for _, s := range catalogue.Services {
		names = append(names, s.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (q *inquiry) catalogue(ctx context.Context) (c catalogue.Catalogue, err error) {
	q.address = serverURL(q.address)
	if err := q.server.load(); err != nil {
		return c, err
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	return c, q.call(ctx, http.MethodGet, "/v1/features", nil, &c)
}

func hasPrefix(prefix string) func(string) bool {
	return func(s string) bool { return strings.HasPrefix(s, prefix) }
}
