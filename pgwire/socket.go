package pgwire

import (
	"cmp"
	"crypto/tls"
	"net"

	"github.com/paimon-sql/paimon-sql/engine"
)

// Keepalives of a connection whose session says nothing else.
const (
	keepInterval = keepAlive / 4
	keepCount    = 4
)

// tune gives the socket what the session's settings say. What the system refuses is
// left as it is: the setting is about comfort.
func (c *conn) tune(o engine.SocketOptions) {
	c.socket = o
	c.watch.every(cmp.Or(o.CheckInterval, c.srv.cfg.WatchDelay))
	nc := c.nc
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	t, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	//nolint:errcheck // best effort
	t.SetKeepAliveConfig(net.KeepAliveConfig{
		Enable: true, Idle: cmp.Or(o.KeepIdle, keepAlive), Interval: cmp.Or(o.KeepInterval, keepInterval), Count: cmp.Or(o.KeepCount, keepCount),
	})
	setUserTimeout(t, o.UserTimeout)
}
