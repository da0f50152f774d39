package commit

import (
	"context"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Live returns the live files of a state.
func (p *Publisher) Live(ctx context.Context, s *snapshot.Snapshot) ([]*manifest.Entry, error) {
	return p.live(ctx, s, nil)
}

// Delta returns the entries of a snapshot's delta, in order.
func (p *Publisher) Delta(ctx context.Context, s *snapshot.Snapshot) ([]*manifest.Entry, error) {
	return p.listed(ctx, s.DeltaManifestList)
}

// Changelog returns the entries of a snapshot's changelog, none where it has none.
func (p *Publisher) Changelog(ctx context.Context, s *snapshot.Snapshot) ([]*manifest.Entry, error) {
	if s.ChangelogManifestList == "" {
		return nil, nil
	}
	return p.listed(ctx, s.ChangelogManifestList)
}

// listed returns the entries of the manifests of a list, in order.
func (p *Publisher) listed(ctx context.Context, list string) ([]*manifest.Entry, error) {
	metas, err := p.o.Manifests.List(ctx, p.o.IO, p.o.Dir+"/manifest/"+list)
	if err != nil {
		return nil, err
	}
	lists, err := p.entries(ctx, metas)
	if err != nil {
		return nil, err
	}
	var out []*manifest.Entry
	for _, l := range lists {
		for i := range l {
			out = append(out, &l[i])
		}
	}
	return out, nil
}
