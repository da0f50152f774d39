//go:build !linux

package pgwire

import (
	"net"
	"time"
)

// setUserTimeout does nothing where the system has no such option, as in PostgreSQL.
func setUserTimeout(*net.TCPConn, time.Duration) {}
