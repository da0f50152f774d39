package engine

import (
	"slices"
	"sync"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// LISTEN and NOTIFY. What a transaction notifies waits in it until it commits;
// then each session that listens to the channel gets it, in the order of the
// commits, in a list that its connection empties between transactions. Equal
// messages of a transaction are one. Sessions of other servers hear nothing.
// Source: PostgreSQL's async.c, and its pages on NOTIFY and LISTEN.

// Notification is one message for a session that listens.
type Notification struct {
	PID              int32 // of the session that sent it; 0 = the server (see snapshotChannel)
	Channel, Payload string
}

func (n Notification) size() int64 { return int64(len(n.Channel)+len(n.Payload)) + 64 }

// Limits of NOTIFY, PostgreSQL's own.
const (
	maxChannelBytes = 63
	maxPayloadBytes = 7999
	// maxNotifyBytes is what all messages that were not delivered yet may take:
	// PostgreSQL keeps its 8 GB on disk.
	maxNotifyBytes = 64 << 20
)

// notifier passes messages between the sessions of an engine.
type notifier struct {
	mu       sync.Mutex // guards all below, and every session's ears
	channels map[string][]*Session
	bytes    int64 // of messages that wait in sessions, each counted once per session
	// count is the number of sessions that listen to each channel, changed.
	changed func(channel string, listeners int)
}

// ears are a session's side of it, guarded by notifier.mu.
type ears struct {
	channels []string // in the order of LISTEN
	inbox    []Notification
	wake     func() // tells the connection that the inbox was empty and is not
}

// notes are what a transaction does when it commits.
type notes struct {
	listens  []listenChange
	messages []Notification
}

// listenChange is a LISTEN, or an UNLISTEN of a channel or (name "") of all.
type listenChange struct {
	channel string
	on      bool
}

// noteMark is where a savepoint stands in notes.
type noteMark struct{ listens, messages int }

func (n *notes) mark() noteMark { return noteMark{len(n.listens), len(n.messages)} }

func (n *notes) back(m noteMark) {
	n.listens, n.messages = n.listens[:m.listens:m.listens], n.messages[:m.messages:m.messages]
}

// notify adds a message to the session's transaction.
func (s *Session) notify(channel, payload string) error {
	switch {
	case channel == "":
		return pgerr.New(pgerr.InvalidParameterValue, "channel name cannot be empty")
	case len(channel) > maxChannelBytes:
		return pgerr.New(pgerr.InvalidParameterValue, "channel name too long")
	case len(payload) > maxPayloadBytes:
		return pgerr.New(pgerr.InvalidParameterValue, "payload string too long")
	}
	n := Notification{PID: s.pid, Channel: channel, Payload: payload}
	s.mu.Lock() // pg_notify may run on several workers
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[Notification]struct{}{}
		for _, m := range s.notes.messages {
			s.told[m] = struct{}{}
		}
	}
	if _, ok := s.told[n]; !ok {
		s.told[n] = struct{}{}
		s.notes.messages = append(s.notes.messages, n)
	}
	return nil
}

// listen changes what the session listens to when its transaction commits.
func (s *Session) listen(channel string, on bool) {
	if !on && s.ears.channels == nil && len(s.notes.listens) == 0 {
		return
	}
	s.notes.listens = append(s.notes.listens, listenChange{channel, on})
}

// mayNotify reports whether there is room for the transaction's messages: asked
// before it is published, because afterwards it is too late.
func (s *Session) mayNotify() error {
	var size int64
	for _, m := range s.notes.messages {
		size += m.size()
	}
	if size == 0 {
		return nil
	}
	n := &s.eng.notifier
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.bytes+size > maxNotifyBytes {
		return pgerr.New(pgerr.ProgramLimitExceeded, "too many notifications in the NOTIFY queue")
	}
	return nil
}

// endNotes ends the transaction's notes: carried out, or dropped.
func (s *Session) endNotes(commit bool) {
	n := s.notes
	s.notes, s.told = notes{}, nil
	if !commit || len(n.listens)+len(n.messages) == 0 {
		return
	}
	x := &s.eng.notifier
	x.mu.Lock()
	for _, l := range n.listens {
		x.listen(s, l)
	}
	wake := x.send(n.messages...)
	if len(n.listens) > 0 && s.ears.wake != nil { // so that it asks whether to wait for more
		wake = append(wake, s.ears.wake)
	}
	x.mu.Unlock()
	for _, f := range wake {
		f()
	}
}

// post delivers messages of the server itself.
func (x *notifier) post(n ...Notification) {
	x.mu.Lock()
	wake := x.send(n...)
	x.mu.Unlock()
	for _, f := range wake {
		f()
	}
}

// send puts messages into the inboxes and returns whom to wake. x.mu is held.
func (x *notifier) send(messages ...Notification) (wake []func()) {
	for _, m := range messages {
		for _, s := range x.channels[m.Channel] {
			e := &s.ears
			if m.PID == 0 && x.bytes > maxNotifyBytes {
				continue // the server cannot fail, as a transaction would
			}
			if len(e.inbox) == 0 && e.wake != nil {
				wake = append(wake, e.wake)
			}
			e.inbox = append(e.inbox, m)
			x.bytes += m.size()
		}
	}
	return wake
}

// listen carries out one change. x.mu is held.
func (x *notifier) listen(s *Session, l listenChange) {
	e := &s.ears
	if l.on {
		if !slices.Contains(e.channels, l.channel) {
			e.channels = append(e.channels, l.channel)
			if x.channels == nil {
				x.channels = map[string][]*Session{}
			}
			x.channels[l.channel] = append(x.channels[l.channel], s)
			x.told(l.channel)
		}
		return
	}
	var gone []string
	for _, c := range e.channels {
		if l.channel == "" || l.channel == c {
			gone = append(gone, c)
			if x.channels[c] = slices.DeleteFunc(x.channels[c], func(y *Session) bool { return y == s }); len(x.channels[c]) == 0 {
				delete(x.channels, c)
			}
			x.told(c)
		}
	}
	hears := func(c string) bool { return !slices.Contains(gone, c) }
	e.channels = slices.DeleteFunc(e.channels, func(c string) bool { return !hears(c) })
	e.inbox = slices.DeleteFunc(e.inbox, func(n Notification) bool {
		if hears(n.Channel) {
			return false
		}
		x.bytes -= n.size()
		return true
	})
}

func (x *notifier) told(channel string) {
	if x.changed != nil {
		x.changed(channel, len(x.channels[channel]))
	}
}

// unlistenAll ends all listening at once: DISCARD ALL, and the session's end.
func (s *Session) unlistenAll() {
	x := &s.eng.notifier
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.ears.channels)+len(s.ears.inbox) > 0 {
		x.listen(s, listenChange{})
	}
}

// OnNotify takes the function that tells the connection of messages; it may be
// called from any goroutine and must not block.
func (s *Session) OnNotify(wake func()) {
	s.eng.notifier.mu.Lock()
	defer s.eng.notifier.mu.Unlock()
	s.ears.wake = wake
}

// Notifications takes the messages that have come. listening says whether more may
// come.
func (s *Session) Notifications() (list []Notification, listening bool) {
	x := &s.eng.notifier
	x.mu.Lock()
	defer x.mu.Unlock()
	list, s.ears.inbox = s.ears.inbox, nil
	for _, n := range list {
		x.bytes -= n.size()
	}
	return list, len(s.ears.channels) > 0
}

// listening are the channels that the session listens to, as a value of type text[].
func (s *Session) listening() []types.Datum {
	s.eng.notifier.mu.Lock()
	defer s.eng.notifier.mu.Unlock()
	out := []types.Datum{}
	for _, c := range s.ears.channels {
		out = append(out, c)
	}
	return out
}

// usage is pg_notification_queue_usage: the part of the room that is taken.
func (x *notifier) usage() float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return float64(x.bytes) / maxNotifyBytes
}
