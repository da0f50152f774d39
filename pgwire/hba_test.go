package pgwire

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// What PostgreSQL 15 says of the same lines in pg_hba_file_rules, where it has the
// method.
func TestParseHBA(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"host all all 127.0.0.1/32 trust", ""},
		{"host all all 10.0.0.0 255.0.0.0 scram-sha-256", ""},
		{"host a,b ,c \"all\" ::1/128 reject # why", ""},
		{"hostssl all all all cert", ""},
		{"hostssl all all all scram-sha-256 clientcert=verify-ca", ""},
		{"local all all trust", ""},
		{"hosts all all all trust", `invalid connection type "hosts"`},
		{"host", "end-of-line before database specification"},
		{"host all", "end-of-line before role specification"},
		{"host all all", "end-of-line before IP address specification"},
		{"host all all 127.0.0.1", "end-of-line before netmask specification"},
		{"host all all 127.0.0.1/33 trust", `invalid CIDR mask in address "127.0.0.1/33"`},
		{"host all all 127.0.0.1/32", "end-of-line before authentication method"},
		{"host all all 127.0.0.1 255.0.255.0 trust", `invalid IP mask "255.0.255.0"`},
		{"host all all 127.0.0.1 ::1 trust", "IP address and mask do not match"},
		{"host all all all password", `invalid authentication method "password": the password would travel in clear text; use scram-sha-256`},
		{"host all all all magic", `invalid authentication method "magic"`},
		{"host all all all cert", "cert authentication is only supported on hostssl connections"},
		{"host all all all trust x", "authentication option not in name=value format: x"},
		{"host all all all trust x=y", `unrecognized authentication option name: "x"`},
		{"host all all db.example trust", `invalid IP address "db.example": host names are not supported`},
		{"host all \"x all trust", "unterminated quoted string"},
	} {
		r := ParseHBA([]byte("# comment\n\n" + tc.line + "\n"))
		if len(r) != 1 || r[0].Err != tc.want || r[0].Line != 3 {
			t.Errorf("%s: %+v, want %q", tc.line, r, tc.want)
		}
	}
	r := ParseHBA([]byte("host a,b,c \\\n all 10.1.2.3/9 trust\r\nhost all all all reject"))
	if len(r) != 2 || len(r[0].Databases) != 3 || r[0].Netmask != "255.128.0.0" || r[1].Line != 3 {
		t.Errorf("%+v", r)
	}
}

func FuzzParseHBA(f *testing.F) {
	f.Add("host all +x,\"y\"\"z\" 1.2.3.4 255.0.0.0 md5\n")
	f.Fuzz(func(t *testing.T, s string) { ParseHBA([]byte(s)) })
}

// clientCert makes a certificate for cn that ca has signed.
func clientCert(t *testing.T, ca tls.Certificate, cn string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, err := x509.ParseCertificate(ca.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: cn}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, ca.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// authority makes a certificate that may sign others.
func authority(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestAccess(t *testing.T) {
	ca := authority(t)
	pool := x509.NewCertPool()
	root, err := x509.ParseCertificate(ca.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(root)
	rules := ParseHBA([]byte(`
hostssl all           carl        all          cert
hostssl secret        all         127.0.0.0/8  scram-sha-256 clientcert=verify-ca
host    shut          all         all          reject
host    all           dave        10.0.0.0/8   trust
host    all           +staff      all          trust
host    sameuser      all         samehost     trust
hostnossl plain       bob         ::/0         trust
hostnossl plain       bob         127.0.0.1/32 scram-sha-256
`))
	_, addr := startServer(t, Config{
		Backend: &fakeBackend{}, FailDelay: -1,
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate(t)}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven},
		Auth: &Access{Rules: func() []HBARule { return rules }, SCRAM: NewSCRAM(lookup(t)),
			Member: func(u, r string) bool { return u == "stan" && r == "staff" }},
	})
	other := authority(t)
	for _, tc := range []struct {
		name, dsn string
		cert      *tls.Certificate
		want      string // of the error; "" = lets in
	}{
		{"certificate", "user=carl database=x sslmode=require", new(clientCert(t, ca, "carl")), ""},
		{"another's certificate", "user=carl database=x sslmode=require", new(clientCert(t, ca, "bob")), `28000 certificate authentication failed for user "carl"`},
		{"no certificate", "user=carl database=x sslmode=require", nil, "28000 connection requires a valid client certificate"},
		{"unknown issuer", "user=carl database=x sslmode=require", new(clientCert(t, other, "carl")), "tls: "},
		{"clear text", "user=carl database=x sslmode=disable", nil, `28000 no pg_hba.conf entry for host "127.0.0.1", user "carl", database "x", no encryption`},
		{"both", "user=bob password=secret database=secret sslmode=require", new(clientCert(t, ca, "carl")), ""},
		{"password alone", "user=bob password=secret database=secret sslmode=require", nil, "28000 connection requires a valid client certificate"},
		{"reject", "user=bob database=shut sslmode=require", nil, `28000 pg_hba.conf rejects connection for host "127.0.0.1", user "bob", database "shut", SSL encryption`},
		{"other net", "user=dave database=x sslmode=disable", nil, "28000 no pg_hba.conf entry"},
		{"member", "user=stan database=x sslmode=disable", nil, ""},
		{"same user", "user=u database=u sslmode=disable", nil, ""},
		{"password", "user=bob password=secret database=plain sslmode=disable", nil, ""},
		{"wrong password", "user=bob password=no database=plain sslmode=disable", nil, `28P01 password authentication failed for user "bob"`},
		{"nobody", "user=eve database=plain sslmode=disable", nil, "28000 no pg_hba.conf entry"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host, port, _ := strings.Cut(addr, ":")
			cfg, err := pgconn.ParseConfig("host=" + host + " port=" + port + " " + tc.dsn)
			if err != nil {
				t.Fatal(err)
			}
			if tc.cert != nil {
				cfg.TLSConfig.Certificates = []tls.Certificate{*tc.cert}
			}
			c, err := pgconn.ConnectConfig(t.Context(), cfg)
			if err == nil {
				defer c.Close(t.Context())
			}
			got := ""
			var pe *pgconn.PgError
			if errors.As(err, &pe) {
				got = pe.Code + " " + pe.Message
			} else if err != nil {
				got = err.Error()
			}
			if tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
