# One static binary in an image without a shell. The features shipped are in it; mount others over /etc/weir/features,
# or a file of settings and `--config`. Settings come from the environment too: WEIR_KAFKA_BROKERS, WEIR_REDIS_ADDRESSES …
FROM golang:1.26 AS build
WORKDIR /src
# The libraries change less often than the code: a layer of their own is built seldom.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /weir ./cmd/weir

# Brings the certificates of public authorities, time zones, and a user without rights.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /weir /weir
COPY config/weir.yaml /etc/weir/weir.yaml
COPY config/features /etc/weir/features
# Containers are reached from outside; weir by itself listens on the loopback only.
ENV WEIR_FEATURES=/etc/weir/features \
    WEIR_API_LISTEN=:8080
EXPOSE 8080
ENTRYPOINT ["/weir"]
CMD ["run", "--config", "/etc/weir/weir.yaml"]
