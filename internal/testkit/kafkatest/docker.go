package kafkatest

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"

	"github.com/weir-stream/weir/internal/testkit/server"
)

func image() string { return "apache/kafka:" + version() }

// inDocker describes a broker in a container. Its port is the same inside and outside, because the
// broker advertises it to clients; it stays the same over a restart.
func inDocker(n node, opts Options) (addrs []string, r server.Runner, origin string, err error) {
	bind, host := "127.0.0.1", "127.0.0.1"
	if !n.host {
		bind = "0.0.0.0"
		if host, err = server.DaemonHost(); err != nil {
			return nil, nil, "", err
		}
	}
	props := n.properties(bind, host)
	for k, v := range opts.Config {
		props[k] = v
	}
	env := map[string]string{"CLUSTER_ID": n.cluster}
	for k, v := range props {
		// The image spells settings like this.
		env["KAFKA_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "__").Replace(k))] = v
	}
	published := network.MustParsePort(fmt.Sprintf("%d/tcp", n.port))
	c := &server.Container{Image: image(), Opts: []testcontainers.ContainerCustomizer{
		testcontainers.WithEnv(env),
		testcontainers.WithHostConfigModifier(func(h *dockercontainer.HostConfig) {
			if n.host {
				h.NetworkMode = "host"
				return
			}
			h.PortBindings = network.PortMap{published: {{HostPort: published.Port()}}}
		}),
	}}
	if !n.host {
		c.Opts = append(c.Opts, testcontainers.WithExposedPorts(published.String()))
	}
	return []string{net.JoinHostPort(host, strconv.Itoa(n.port))}, c, "docker, " + c.Image, nil
}
