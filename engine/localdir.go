package engine

// localDir returns the directory for what storage keeps on the local disk, making
// it at the first call. It is removed when the engine closes, or by the next
// process that starts.
func (e *Engine) localDir() (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.local == nil {
		d, err := newTempDir(e.cfg.TempDir)
		if err != nil {
			return "", err
		}
		e.local = d
	}
	return e.local.path, nil
}

// removeLocal removes what localDir made.
func (e *Engine) removeLocal() {
	e.mu.Lock()
	d := e.local
	e.local = nil
	e.mu.Unlock()
	if d == nil {
		return
	}
	if err := d.remove(); err != nil {
		e.log.Warn("temporary files stay behind", "err", err)
	}
}
