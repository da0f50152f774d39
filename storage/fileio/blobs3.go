package fileio

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

func init() { openers["s3"] = openS3 }

// openS3 opens a bucket of S3 or of a store that speaks its protocol. Credentials
// come from the standard AWS variables, profile files or the machine's role.
//
//	endpoint    another store than Amazon's, as http://127.0.0.1:9000
//	region      AWS_REGION otherwise; us-east-1 with an endpoint and none given
//	profile     of the AWS configuration files
//	path-style  bucket in the path, not in the host name; true with an endpoint
//	anonymous   requests are not signed
//
// With an endpoint, requests carry no checksum trailers (AWS_REQUEST_CHECKSUM_CALCULATION
// has the last word): many stores do not know them.
func openS3(ctx context.Context, name string, q url.Values) (store, error) {
	endpoint := take(q, "endpoint")
	region, profile := take(q, "region"), take(q, "profile")
	pathStyle, err := takeBool(q, endpoint != "", "path-style", "path_style", "use_path_style")
	if err != nil {
		return store{}, err
	}
	anonymous, err := takeBool(q, false, "anonymous")
	if err != nil {
		return store{}, err
	}
	var opts []func(*config.LoadOptions) error
	if region != "" {
		opts = append(opts, config.WithRegion(region))
	}
	if profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(profile))
	}
	if anonymous {
		opts = append(opts, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return store{}, errors.New("AWS configuration: " + scrub(err.Error()))
	}
	if endpoint != "" {
		if !strings.Contains(endpoint, "://") {
			endpoint = "https://" + endpoint
		}
		cfg.BaseEndpoint = aws.String(endpoint)
		if cfg.RequestChecksumCalculation == aws.RequestChecksumCalculationUnset || cfg.RequestChecksumCalculation == aws.RequestChecksumCalculationWhenSupported {
			cfg.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			cfg.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	}
	if cfg.Region == "" {
		if cfg.BaseEndpoint == nil {
			return store{}, errors.New("warehouse URI names no region: add ?region=NAME, or set AWS_REGION")
		}
		cfg.Region = "us-east-1"
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = pathStyle })
	b, err := s3blob.OpenBucket(ctx, client, name, &s3blob.Options{RequestChecksumCalculation: cfg.RequestChecksumCalculation})
	if err != nil {
		return store{}, err
	}
	return store{Bucket: b, stopsByReader: true, remove: func(ctx context.Context, key string) error {
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(name), Key: aws.String(key)})
		return err
	}}, nil
}
