package engine

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Snapshots as notifications. Who listens to paimon_snapshot hears of every new
// snapshot of every table, who listens to paimon_snapshot:schema.table of that table's:
// a message of the server itself (process id 0) with a JSON payload, see announced.
// Commits of this server are announced at once; those of other processes when the
// tables are looked at, every paimon.snapshot_poll_interval. While nobody listens
// nothing is looked at.
//
// A snapshot that was there when the first session listened is not announced, one that
// this server commits afterwards always is.

// snapshotChannel is the channel of all tables; with a colon and a name it is that of
// one.
const snapshotChannel = "paimon_snapshot"

func announces(channel string) bool {
	return channel == snapshotChannel || strings.HasPrefix(channel, snapshotChannel+":")
}

// announced is the payload.
type announced struct {
	Schema   string `json:"schema"`
	Table    string `json:"table"`
	Branch   string `json:"branch,omitempty"`
	Snapshot int64  `json:"snapshot"`
	Kind     string `json:"kind"` // APPEND, OVERWRITE, COMPACT or ANALYZE
	Time     int64  `json:"time"` // milliseconds since 1970
	User     string `json:"user"` // who committed, by Paimon's word
	Records  *int64 `json:"records,omitempty"`
}

// announcer watches tables while somebody listens.
type announcer struct {
	e *Engine

	mu     sync.Mutex // guards all below
	ears   map[string]int
	stop   context.CancelFunc // nil = nobody listens
	tables map[tableKey]*announcedTable
	wake   chan struct{}
	due    map[tableKey]table.Table // to be looked at now
}

// announcedTable is how far a table has been announced.
type announcedTable struct {
	next   int64 // the id to be announced next; 0 = not known yet
	silent bool  // nothing was announced yet
}

// listening is told of the number of sessions that listen to a channel.
func (a *announcer) listening(channel string, n int) {
	if !announces(channel) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ears == nil {
		a.ears = map[string]int{}
	}
	if a.ears[channel] = n; n == 0 {
		delete(a.ears, channel)
	}
	switch {
	case len(a.ears) > 0 && a.stop == nil && a.e.begin():
		ctx, cancel := context.WithCancel(a.e.ctx)
		a.stop, a.tables, a.due, a.wake = cancel, map[tableKey]*announcedTable{}, map[tableKey]table.Table{}, make(chan struct{}, 1)
		go func(wake chan struct{}) {
			defer a.e.bg.Done()
			a.run(ctx, wake)
		}(a.wake)
	case len(a.ears) == 0 && a.stop != nil:
		a.stop()
		a.stop = nil
	}
}

// committed is told of a snapshot that this server has made.
func (a *announcer) committed(k tableKey, store table.Table, id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop == nil || id <= 0 {
		return
	}
	t := a.tables[k]
	if t == nil {
		t = &announcedTable{next: id, silent: true}
		a.tables[k] = t
	}
	// The first look may have found it before this call.
	if t.silent && id < t.next {
		t.next = id
	}
	a.due[k] = store
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *announcer) run(ctx context.Context, wake chan struct{}) {
	a.all(ctx)
	for {
		var tick <-chan time.Time
		if d := time.Duration(a.e.reg.number("paimon.snapshot_poll_interval")) * time.Millisecond; d > 0 {
			tick = time.After(d)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
			a.all(ctx)
		case <-wake:
			a.mu.Lock()
			due := a.due
			a.due = map[tableKey]table.Table{}
			a.mu.Unlock()
			for k, store := range due {
				a.look(ctx, k, store)
			}
		}
	}
}

// all looks at every table that somebody listens to.
func (a *announcer) all(ctx context.Context) {
	schemas, err := a.e.cat.Schemas(ctx)
	for _, sc := range schemas {
		var names []string
		if names, err = a.e.cat.Tables(ctx, sc); err != nil {
			break
		}
		for _, n := range names {
			if ctx.Err() != nil || !a.wanted(sc, n) {
				continue
			}
			rel, err := a.e.cat.Resolve(ctx, sc, n, catalog.ResolveOptions{})
			if err != nil {
				continue // dropped meanwhile, or not readable: others are told
			}
			if info, ok := rel.(catalog.TableInfo); ok && info.Table() != nil {
				a.look(ctx, keyOf(info), info.Table())
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		a.e.log.Warn("tables cannot be listed to announce their snapshots", "err", err)
	}
}

func (a *announcer) wanted(schemaName, name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ears[snapshotChannel]+a.ears[snapshotChannel+":"+schemaName+"."+name] > 0
}

// look announces what is new in a table.
func (a *announcer) look(ctx context.Context, k tableKey, store table.Table) {
	at, err := store.Resolve(ctx, snapshot.Ref{Branch: k.branch})
	if err != nil {
		return // dropped meanwhile
	}
	latest := int64(0)
	if at.Snap != nil {
		latest = at.Snap.ID
	}
	a.mu.Lock()
	t := a.tables[k]
	if t == nil {
		t = &announcedTable{next: latest + 1, silent: true}
		a.tables[k] = t
	}
	if t.next > latest+1 { // rolled back
		t.next = latest + 1
	}
	from := t.next
	if from <= latest {
		t.next, t.silent = latest+1, false
	}
	a.mu.Unlock()
	sc, name, _ := strings.Cut(tableKey{dir: k.dir}.shown(), ".")
	for id := from; id <= latest && ctx.Err() == nil; id++ {
		snap := at.Snap
		if id < latest {
			r, err := store.Resolve(ctx, snapshot.Ref{Kind: snapshot.ID, ID: id, Branch: k.branch})
			if err != nil || r.Snap == nil {
				continue // expired meanwhile
			}
			snap = r.Snap
		}
		b, err := json.Marshal(announced{
			Schema: sc, Table: name, Branch: k.branch, Snapshot: id, Kind: snap.CommitKind, Time: snap.TimeMillis, User: snap.CommitUser, Records: snap.DeltaRecordCount,
		})
		if err != nil || len(b) > maxPayloadBytes {
			continue
		}
		a.e.notifier.post(Notification{Channel: snapshotChannel, Payload: string(b)},
			Notification{Channel: snapshotChannel + ":" + sc + "." + name, Payload: string(b)})
	}
}
