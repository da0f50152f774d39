package metrics

import (
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	NewCounter("test_a_total", "A.").Add(3)
	NewCounter("test_a_total", "A.").Add(4) // the same one
	NewCounterVec("test_b_total", "B.", "kind").With("x\"y").Add(1)
	NewGaugeFunc("test_c_bytes", "C.", func() float64 { return 1 })
	NewGaugeFunc("test_c_bytes", "C.", func() float64 { return 2.5 })
	h := NewHistogram("test_d_seconds", "D.", []float64{0.1, 1})
	for _, v := range []float64{0.05, 0.1, 0.5, 7} {
		h.Observe(v)
	}
	var b strings.Builder
	Write(&b)
	for _, want := range []string{
		"# HELP test_a_total A.\n# TYPE test_a_total counter\ntest_a_total 7\n",
		"test_b_total{kind=\"x\\\"y\"} 1\n",
		"# TYPE test_c_bytes gauge\ntest_c_bytes 2.5\n",
		"test_d_seconds_bucket{le=\"0.1\"} 2\ntest_d_seconds_bucket{le=\"1\"} 3\ntest_d_seconds_bucket{le=\"+Inf\"} 4\ntest_d_seconds_sum 7.65\ntest_d_seconds_count 4\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	var none *Counter
	none.Add(1)
	var no *Histogram
	no.Observe(1)
}
