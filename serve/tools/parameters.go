package tools

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/serve/reply"
)

// parametersOf reads the parameters of a URL, each of which is known and given once.
func parametersOf(query string, known ...string) (url.Values, *reply.Error) {
	parameters, err := url.ParseQuery(query)
	if err != nil {
		return nil, reply.Errorf(reply.MalformedQuery, "the query cannot be read: %v", err)
	}
	for name, values := range parameters {
		switch {
		case !slices.Contains(known, name):
			return nil, reply.Errorf(reply.UnknownKey, "there is no parameter %s; use %s", reply.Quote(name), strings.Join(known, " or ")).Unlike(name, known)
		case len(values) > 1:
			return nil, reply.Errorf(reply.DuplicateKey, "%s is given twice", name)
		}
	}
	return parameters, nil
}

// limitOf is the parameter limit, from 1 to most; usual without it.
func limitOf(parameters url.Values, usual, most int) (int, *reply.Error) {
	if !parameters.Has("limit") {
		return usual, nil
	}
	limit, err := strconv.Atoi(parameters.Get("limit"))
	if err != nil {
		return 0, reply.Errorf(reply.WrongType, "limit must be a whole number, not %s", reply.Quote(parameters.Get("limit")))
	}
	if limit < 1 || limit > most {
		return 0, outOfRange("limit", limit, most)
	}
	return limit, nil
}
