package mergetree

// engines are the merge engines: one file and one line each.
var engines = []EngineFactory{}
