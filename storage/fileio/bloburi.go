package fileio

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// openers open a bucket by scheme; q holds the query options, each of which the
// opener removes that it knows.
var openers = map[string]func(ctx context.Context, name string, q url.Values) (store, error){}

// openBlob opens scheme://bucket/prefix?option=value.
func openBlob(scheme, uri string) (FileIO, error) {
	open := openers[scheme]
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("warehouse URI names no bucket: %s://BUCKET/PREFIX is expected", scheme) // err quotes what may hold secrets
	}
	if u.User != nil {
		return nil, fmt.Errorf("warehouse URI holds credentials: they are taken from the environment")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("warehouse URI has a query that cannot be read")
	}
	get := func(ctx context.Context, name string) (store, error) {
		q := url.Values{}
		for k, v := range query {
			q[k] = v
		}
		s, err := open(ctx, name, q)
		if err != nil {
			return store{}, err
		}
		for k := range q {
			if isSecret(k) {
				return store{}, fmt.Errorf("warehouse URI holds credentials (%s): they are taken from the environment", k)
			}
			return store{}, fmt.Errorf("warehouse URI has an unknown option %q", k)
		}
		return s, nil
	}
	s, err := get(context.Background(), u.Host)
	if err != nil {
		return nil, err
	}
	b := newBlob(s, u.Path)
	b.scheme, b.name, b.others = scheme, u.Host, get
	b.opened[u.Host] = s
	return b, nil
}

func isSecret(key string) bool {
	k := strings.ToLower(key)
	for _, w := range []string{"key", "secret", "token", "password", "sas", "credential"} {
		if strings.Contains(k, w) {
			return true
		}
	}
	return false
}

// take removes an option, under the first of its names that is there.
func take(q url.Values, names ...string) string {
	v := ""
	for _, n := range names {
		if q.Has(n) {
			v = q.Get(n)
			q.Del(n)
		}
	}
	return v
}

// takeBool removes an option that is true or false.
func takeBool(q url.Values, standard bool, names ...string) (bool, error) {
	v := take(q, names...)
	if v == "" {
		return standard, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, fmt.Errorf("warehouse URI option %s is neither true nor false", names[0])
	}
	return b, nil
}
