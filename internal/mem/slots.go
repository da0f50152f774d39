package mem

import "context"

// Slots are the CPU slots of the process: a worker holds one while it works on
// a morsel, so a short query waits for one morsel of a long one and no more.
type Slots struct{ c chan struct{} }

// NewSlots makes n slots.
func NewSlots(n int) *Slots { return &Slots{c: make(chan struct{}, n)} }

// Acquire waits for a slot or for ctx.
func (s *Slots) Acquire(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s.c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release gives the slot back.
func (s *Slots) Release() {
	if s != nil {
		<-s.c
	}
}
