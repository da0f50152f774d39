package pgwire

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, which package syscall lacks.
const tcpUserTimeout = 18

func setUserTimeout(t *net.TCPConn, d time.Duration) {
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	//nolint:errcheck // best effort
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
}
