// Package s3fake is an object store in memory for tests, which speaks the part of
// S3's protocol that this product asks for: GET with ranges, HEAD, PUT with
// If-None-Match, DELETE, CopyObject, ListObjectsV2 and multipart uploads, path
// style. Signatures are not checked.
package s3fake

import (
	"crypto/md5" //nolint:gosec // what S3 calls an ETag
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is the store. Every bucket that is named exists. Safe for concurrent use.
type Server struct {
	*httptest.Server
	// PageSize bounds the keys of a listing's page.
	PageSize int
	// Unconditional makes it ignore If-None-Match, as older stores do.
	Unconditional bool

	mu      sync.Mutex // guards all below
	objects map[string]object
	uploads map[string]*upload
	next    int
	counts  map[string]int
	faults  []*Fault
}

type object struct {
	data []byte
	meta http.Header
	mod  time.Time
	etag string
}

type upload struct {
	key   string
	meta  http.Header
	parts map[int][]byte
}

// Fault is what happens to requests in place of, or after, their work.
type Fault struct {
	Op    string // GET, HEAD, PUT, DELETE, LIST, COPY, CREATE, PART, COMPLETE, ABORT
	Key   string // substring of bucket/key
	Times int    // how many requests, 0 = all
	// Status is answered instead, with Code in the body.
	Status int
	Code   string
	// Lost does the work and breaks the connection without an answer.
	Lost bool
	// Cut breaks the connection after so many bytes of a GET's body.
	Cut int
	// Then runs with the request, before its work and without any lock.
	Then func()
}

// New starts a server; Close ends it.
func New() *Server {
	s := &Server{PageSize: 1000, objects: map[string]object{}, uploads: map[string]*upload{}, counts: map[string]int{}}
	s.Server = httptest.NewServer(s)
	return s
}

// Warehouse returns the URI of a prefix in a bucket.
func (s *Server) Warehouse(bucket, prefix string) string {
	return "s3://" + bucket + "/" + prefix + "?region=us-east-1&endpoint=" + url.QueryEscape(s.URL)
}

// Break arms a fault.
func (s *Server) Break(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// Repair disarms all faults.
func (s *Server) Repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Counts returns how many requests of each kind there were, and starts again.
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	s.counts = map[string]int{}
	return c
}

// Keys returns every bucket/key that begins with prefix, in order.
func (s *Server) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for k := range s.objects {
		if strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return out
}

// Uploads returns how many multipart uploads are open.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// Set stores an object at bucket/key.
func (s *Server) Set(key string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(key, data, nil)
}

func (s *Server) store(key string, data []byte, meta http.Header) object {
	sum := md5.Sum(data) //nolint:gosec // as above
	o := object{data: data, meta: meta, mod: time.Now().UTC(), etag: `"` + hex.EncodeToString(sum[:]) + `"`}
	s.objects[key] = o
	return o
}

// op names a request.
func op(r *http.Request, key string) string {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && !strings.Contains(key, "/"):
		return "LIST"
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CREATE"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		return "COMPLETE"
	case r.Method == http.MethodPut && q.Has("uploadId"):
		return "PART"
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		return "ABORT"
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		return "COPY"
	}
	return r.Method
}

func (s *Server) fault(name, key string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name]++
	for i, f := range s.faults {
		if f.Op != name || !strings.Contains(key, f.Key) {
			continue
		}
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		c := *f
		return &c
	}
	return nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if strings.Contains(key, "/") && strings.HasSuffix(r.URL.Path, "/") {
		key += "/"
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	name := op(r, key)
	f := s.fault(name, key)
	if f == nil {
		f = &Fault{}
	}
	if f.Then != nil {
		f.Then()
	}
	if f.Status != 0 {
		fail(w, f.Status, f.Code)
		return
	}
	if f.Lost {
		s.do(httptest.NewRecorder(), r, name, key, body)
		panic(http.ErrAbortHandler)
	}
	if f.Cut > 0 {
		w = &cutWriter{ResponseWriter: w, left: f.Cut}
	}
	s.do(w, r, name, key, body)
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (c *cutWriter) Write(b []byte) (int, error) {
	if len(b) <= c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.left])
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	panic(http.ErrAbortHandler)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s happened</Message></Error>", code, code)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	b, err := xml.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
}

// metaOf keeps what a later HEAD has to show.
func metaOf(h http.Header) http.Header {
	out := http.Header{}
	for k, v := range h {
		if strings.HasPrefix(k, "X-Amz-Meta-") || k == "Content-Type" {
			out[k] = v
		}
	}
	return out
}

func (s *Server) do(w http.ResponseWriter, r *http.Request, name, key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	absent := r.Header.Get("If-None-Match") == "*" && !s.Unconditional
	o, there := s.objects[key]
	switch name {
	case "LIST":
		s.list(w, key, q)
	case "HEAD", "GET":
		if !there {
			fail(w, 404, "NoSuchKey")
			return
		}
		for k, v := range o.meta {
			w.Header()[k] = v
		}
		w.Header().Set("ETag", o.etag)
		w.Header().Set("Last-Modified", o.mod.Format(http.TimeFormat))
		s.get(w, r, name, o)
	case "PUT":
		if absent && there {
			fail(w, 412, "PreconditionFailed")
			return
		}
		w.Header().Set("ETag", s.store(key, body, metaOf(r.Header)).etag)
	case "COPY":
		from, err := url.PathUnescape(strings.TrimPrefix(r.Header.Get("X-Amz-Copy-Source"), "/"))
		src, ok := s.objects[from]
		if err != nil || !ok {
			fail(w, 404, "NoSuchKey")
			return
		}
		c := s.store(key, src.data, src.meta)
		answer(w, struct {
			XMLName      xml.Name `xml:"CopyObjectResult"`
			ETag         string
			LastModified time.Time
		}{ETag: c.etag, LastModified: c.mod})
	case "DELETE":
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case "CREATE":
		s.next++
		id := strconv.Itoa(s.next)
		s.uploads[id] = &upload{key, metaOf(r.Header), map[int][]byte{}}
		answer(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadID string   `xml:"UploadId"`
		}{UploadID: id})
	default:
		s.multipart(w, name, key, q, body, absent && there)
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, name string, o object) {
	data, status := o.data, http.StatusOK
	if rg := r.Header.Get("Range"); rg != "" {
		a, b, _ := strings.Cut(strings.TrimPrefix(rg, "bytes="), "-")
		from, _ := strconv.Atoi(a)
		to := len(o.data) - 1
		if b != "" {
			n, _ := strconv.Atoi(b)
			to = min(to, n)
		}
		if from >= len(o.data) {
			fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		data, status = o.data[from:to+1], http.StatusPartialContent
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(o.data)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	if name == "GET" {
		_, _ = w.Write(data)
	}
}

func (s *Server) multipart(w http.ResponseWriter, name, key string, q url.Values, body []byte, refuse bool) {
	id := q.Get("uploadId")
	u := s.uploads[id]
	if u == nil || u.key != key {
		fail(w, 404, "NoSuchUpload")
		return
	}
	switch name {
	case "PART":
		n, _ := strconv.Atoi(q.Get("partNumber"))
		u.parts[n] = body
		w.Header().Set("ETag", fmt.Sprintf(`"%d-%d"`, n, len(body)))
	case "ABORT":
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case "COMPLETE":
		if refuse {
			fail(w, 412, "PreconditionFailed")
			return
		}
		var data []byte
		for n := 1; n <= len(u.parts); n++ {
			data = append(data, u.parts[n]...)
		}
		delete(s.uploads, id)
		o := s.store(key, data, u.meta)
		answer(w, struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
			ETag    string
			Key     string
		}{ETag: o.etag, Key: key})
	default:
		fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

type listResult struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	KeyCount              int
	Contents              []listObject
	CommonPrefixes        []struct{ Prefix string }
}

type listObject struct {
	Key          string
	LastModified time.Time
	ETag         string
	Size         int
}

func (s *Server) list(w http.ResponseWriter, bucket string, q url.Values) {
	prefix, delim, after := q.Get("prefix"), q.Get("delimiter"), q.Get("continuation-token")
	most := s.PageSize
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		most = min(most, n)
	}
	var keys []string
	for k := range s.objects {
		if b, k, _ := strings.Cut(k, "/"); b == bucket && strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	var res listResult
	last := ""
	for _, k := range keys {
		name := k
		if i := strings.Index(k[len(prefix):], delim); delim != "" && i >= 0 {
			name = k[:len(prefix)+i+len(delim)]
		}
		if name <= after && after != "" || name == last {
			continue
		}
		if res.KeyCount == most {
			res.IsTruncated, res.NextContinuationToken = true, last
			break
		}
		last = name
		res.KeyCount++
		if name != k || delim != "" && strings.HasSuffix(name, delim) && len(name) > len(prefix) {
			res.CommonPrefixes = append(res.CommonPrefixes, struct{ Prefix string }{name})
			continue
		}
		o := s.objects[bucket+"/"+k]
		res.Contents = append(res.Contents, listObject{k, o.mod, o.etag, len(o.data)})
	}
	answer(w, res)
}
