# The image: one static binary on scratch, run as a numeric non-root user.
#
#   docker build --build-arg VERSION=0.1.0 -t rabbitonce:0.1.0 .

# go.mod names the Go that rabbitonce is developed with. The image takes the newest one instead:
# fixes to TLS and certificate checks in the standard library reach a static binary only
# through the toolchain that links it.
FROM golang:1.27 AS build
ARG VERSION=dev
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/rabbitonce .

FROM scratch
ARG VERSION=dev
LABEL org.opencontainers.image.title="rabbitonce" \
      org.opencontainers.image.description="Sidecar between RabbitMQ and an HTTP service: one successful execution per message ID" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION"
# Public certificate authorities, for amqps, rediss and https with certificates of no private CA.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/rabbitonce /rabbitonce
# Numeric, because Kubernetes can check runAsNonRoot only against a number.
USER 65532:65532
# Probes, status and metrics (HEALTH_ADDR).
EXPOSE 8085
# scratch has no shell and no curl: the binary asks its own /livez.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/rabbitonce", "healthcheck"]
ENTRYPOINT ["/rabbitonce"]
