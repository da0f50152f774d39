package pgwire

import "encoding/binary"

// cancelRequest passes a CancelRequest on: int32 process id, int32 secret. There
// is no answer, whether the key fits or not, and the connection ends. That a
// late request does not hit the next statement is the backend's care: it alone
// knows what runs.
func (c *conn) cancelRequest(body []byte) error {
	if len(body) == 8 {
		c.srv.cfg.Backend.Cancel(int32(binary.BigEndian.Uint32(body)), binary.BigEndian.Uint32(body[4:]))
	}
	return errDone
}
