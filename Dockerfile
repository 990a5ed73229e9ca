# One static binary in an image without a shell. The features shipped are in it; mount others over /etc/weir/features,
# or a file of settings and `--config`. Settings come from the environment too: WEIR_KAFKA_BROKERS, WEIR_REDIS_ADDRESSES …
#
# For several machines at once:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=1.2.3 --tag weir .
#
# Go compiles for other machines itself, so the build runs on this one's, whatever the image is for.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
# The libraries change less often than the code: a layer of their own is built seldom.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
# What `weir version` prints; without them only the Go release is known, for the repository is not in the build.
ARG VERSION COMMIT DATE
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags="-s -w -X main.release=$VERSION -X main.commit=$COMMIT -X main.date=$DATE" -o /weir ./cmd/weir

# Brings the certificates of public authorities, time zones, and a user without rights.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /weir /weir
COPY config/weir.yaml /etc/weir/weir.yaml
COPY config/features /etc/weir/features
# Containers are reached from outside; weir by itself listens on the loopback only.
ENV WEIR_FEATURES=/etc/weir/features \
    WEIR_API_LISTEN=:8080
EXPOSE 8080
# By its number, so that Kubernetes can tell that it is not root.
USER 65532:65532
# There is no shell and no curl, so the binary asks itself. Kubernetes ignores this and has probes of its own.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/weir", "health", "--config", "/etc/weir/weir.yaml"]
ENTRYPOINT ["/weir"]
CMD ["run", "--config", "/etc/weir/weir.yaml"]
