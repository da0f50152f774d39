package main

import (
	"log/slog"
	"net"
	"strings"
)

// notify tells systemd, where it is the one that started the server, what state the
// server is in: sd_notify(3).
func (a *app) notify(state string, log *slog.Logger) {
	name := a.env("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	if strings.HasPrefix(name, "@") { // an abstract socket
		name = "\x00" + name[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close() //nolint:errcheck // a datagram socket has nothing to lose
	}
	if err != nil {
		log.Warn("systemd cannot be told", "err", err)
	}
}
