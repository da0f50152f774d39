package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"gocloud.dev/gcerrors"
)

func isNotFound(err error) bool {
	return err != nil && gcerrors.Code(err) == gcerrors.NotFound && !isCertainlyElse(err)
}

// isCertainlyElse is true of answers that the library calls "not found" though
// they speak of the bucket or the host, not of the object.
func isCertainlyElse(err error) bool {
	code, _ := storeCode(err)
	return code == "NoSuchBucket" || code == "ContainerNotFound" || strings.Contains(err.Error(), "no such host")
}

// blobError turns an error of a store into one of this package. What its text
// could hold of URLs (signatures, tokens) is left out.
func blobError(ctx context.Context, op, p string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(err, ErrNotExist) {
		return fmt.Errorf("%s %s: %w", op, p, context.Cause(ctx))
	}
	if isNotFound(err) {
		return fmt.Errorf("%s %s: %w", op, p, ErrNotExist)
	}
	if code, status := storeCode(err); code == "NotImplemented" || status == http.StatusNotImplemented {
		return &UnsupportedError{Feature: "an object store that does not know a request of " + op}
	}
	return &PathError{Op: op, Path: p, Err: errors.New(storeText(err))}
}

// storeCode returns the store's name of an error and the HTTP status; empty and 0
// where there was no answer.
func storeCode(err error) (code string, status int) {
	var named interface{ ErrorCode() string } // S3
	if errors.As(err, &named) {
		code = named.ErrorCode()
	}
	var st interface{ HTTPStatusCode() int } // S3
	if errors.As(err, &st) {
		status = st.HTTPStatusCode()
	}
	if status == 0 {
		for _, f := range moreCodes {
			if c, s := f(err); s != 0 {
				return c, s
			}
		}
	}
	return code, status
}

// moreCodes are storeCode of the stores that are built in besides S3.
var moreCodes []func(error) (code string, status int)

// storeText says what went wrong, without the URL of the request.
func storeText(err error) string {
	code, status := storeCode(err)
	var msg interface{ ErrorMessage() string }
	text := ""
	if errors.As(err, &msg) {
		text = msg.ErrorMessage()
	}
	switch {
	case status != 0 || code != "":
		s := "the object store answered"
		if status != 0 {
			s += fmt.Sprintf(" %d", status)
		}
		if code != "" {
			s += " " + code
		}
		if text != "" && text != code && text != "UnknownError" {
			s += ": " + text
		}
		return scrub(s)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the object store's answer broke off"
	}
	var ne *net.OpError
	if errors.As(err, &ne) {
		return scrub("the object store cannot be reached: " + ne.Error())
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		return scrub("the object store cannot be reached: " + ue.Err.Error())
	}
	return scrub(err.Error())
}

// secrets are the variables whose values must be in no message.
var secrets = []string{
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID",
	"AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_CLIENT_SECRET",
}

// scrub takes credentials out of a text that others wrote.
func scrub(s string) string {
	for _, name := range secrets {
		if v := os.Getenv(name); len(v) >= 4 {
			s = strings.ReplaceAll(s, v, "***")
			s = strings.ReplaceAll(s, url.QueryEscape(v), "***")
		}
	}
	return s
}

// putVerdict is what an error says about a conditional PUT.
type putVerdict int

const (
	unknownVerdict putVerdict = iota // no answer, or a server error: it may be stored
	taken                            // there is an object
	again                            // nothing was decided
	refused                          // nothing was stored, and will not be
)

func verdict(err error) putVerdict {
	if gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return taken
	}
	code, status := storeCode(err)
	switch {
	case status == http.StatusPreconditionFailed:
		return taken
	case status == http.StatusConflict && (code == "ConditionalRequestConflict" || code == "OperationAborted"), status == http.StatusTooManyRequests:
		return again
	case status == http.StatusRequestTimeout:
		return unknownVerdict
	case status >= 400 && status < 500, status == http.StatusNotImplemented:
		return refused
	}
	return unknownVerdict
}
