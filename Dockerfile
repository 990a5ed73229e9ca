# One static binary in an image without a shell. It has the shipped features; mount others over /etc/weir/features, and a
# file of settings over /etc/weir/weir.yaml, with what config/image.yaml has. Settings may also come from the environment,
# such as WEIR_KAFKA_BROKERS.
#
# For several machines at once:
#   docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=1.2.3 --tag weir .
#
# The tag production leaves out `weir demo`, with its stand-ins for Kafka and Redis.
#
# Go cross-compiles, so the build runs on this machine's platform for any image.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
# The libraries change less often than the code, so they have their own layer.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
# What `weir version` prints; without them it prints only the Go release, because the repository is not in the build.
ARG VERSION COMMIT DATE
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -tags production -trimpath -buildvcs=false \
    -ldflags="-s -w -X main.release=$VERSION -X main.commit=$COMMIT -X main.date=$DATE" -o /weir ./cmd/weir

# Has the certificates of public authorities, time zones, and an unprivileged user.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /weir /weir
# A file and not variables, which would override the file of a user who mounts one. Every command reads it.
COPY config/image.yaml /etc/weir/weir.yaml
ENV WEIR_CONFIG=/etc/weir/weir.yaml
COPY config/features /etc/weir/features
EXPOSE 8080
# The user by number, so that Kubernetes can tell that it is not root.
USER 65532:65532
# There is no shell and no curl, so the binary asks itself. Kubernetes ignores this and uses its own probes.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["/weir", "health"]
ENTRYPOINT ["/weir"]
CMD ["run"]
