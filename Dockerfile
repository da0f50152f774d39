# docker build --build-arg VERSION=$(git describe --tags --always) -t paimon-sql .
# docker run -e PAIMON_SQL_PASSWORD=... -v /data/warehouse:/warehouse -p 5432:5432 paimon-sql
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/paimon-sql ./cmd/paimon-sql \
    && mkdir -p /out/warehouse && mkdir -m 1777 /out/tmp

# The binary is static and brings its time zones: it needs no system, only the
# authorities that sign the certificates of object stores.
FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/paimon-sql /usr/local/bin/
COPY --from=build --chown=65532:65532 /out/warehouse /warehouse
COPY --from=build --chown=65532:65532 /out/tmp /tmp
USER 65532:65532
ENV PAIMON_SQL_WAREHOUSE=/warehouse \
    PAIMON_SQL_LISTEN=0.0.0.0:5432 \
    PAIMON_SQL_HTTP_LISTEN=0.0.0.0:9187
VOLUME /warehouse
EXPOSE 5432 9187
# Without PAIMON_SQL_PASSWORD, PAIMON_SQL_PASSWORD_FILE or PAIMON_SQL_HBA_FILE the server
# refuses to start: everybody would be let in. Probes: GET /healthz and /readyz on 9187.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/paimon-sql"]
CMD ["serve"]
