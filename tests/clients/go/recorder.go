package main

import (
	"context"
	"time"

	"gorm.io/gorm/logger"
)

// recorder keeps the statements that gorm sends.
type recorder struct {
	logger.Interface
	sql *[]string
}

// Trace is called after each statement.
func (r recorder) Trace(_ context.Context, _ time.Time, fc func() (string, int64), _ error) {
	sql, _ := fc()
	*r.sql = append(*r.sql, sql)
}

// LogMode keeps the recorder in place.
func (r recorder) LogMode(logger.LogLevel) logger.Interface { return r }
