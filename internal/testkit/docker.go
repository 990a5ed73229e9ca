package testkit

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"
)

const redisImage = "redis:7"

func kafkaImage() string { return "apache/kafka:" + kafkaVersion() }

// container is a server in a Docker container that can be started again.
type container struct {
	image string
	opts  []testcontainers.ContainerCustomizer

	mu  sync.Mutex
	ctr *testcontainers.DockerContainer
}

func (c *container) start() error {
	ctx, cancel := startContext()
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr != nil {
		return c.ctr.Start(ctx)
	}
	ctr, err := testcontainers.Run(ctx, c.image, c.opts...)
	c.ctr = ctr
	return err
}

// end leaves the stopped container, with its files, for the next start.
func (c *container) end(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	api, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	state, err := c.ctr.State(ctx)
	if err != nil {
		return err
	}
	if !state.Running {
		return nil
	}
	if err := sendTo(ctx, api, c.ctr, sig); err != nil {
		return err
	}
	detail, ok := poll(30*time.Second, func() (bool, string) {
		state, err := c.ctr.State(ctx)
		if err != nil {
			return false, err.Error()
		}
		return !state.Running, string(state.Status)
	})
	if !ok {
		return fmt.Errorf("container of %s did not end within 30s of %v: %s", c.image, sig, detail)
	}
	return nil
}

// sendTo sends a signal to a container's first process.
func sendTo(ctx context.Context, api *testcontainers.DockerClient, c *testcontainers.DockerContainer, sig syscall.Signal) error {
	_, err := api.ContainerKill(ctx, c.GetContainerID(), client.ContainerKillOptions{Signal: strconv.Itoa(int(sig))})
	return err
}

func (c *container) signal(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	api, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return err
	}
	defer api.Close()
	return sendTo(ctx, api, c.ctr, sig)
}

func (c *container) remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr != nil {
		_ = testcontainers.TerminateContainer(c.ctr, testcontainers.StopTimeout(0))
		c.ctr = nil
	}
}

// gone is never closed: a container that ends while it starts is found by the
// start's deadline.
func (c *container) gone() <-chan struct{} { return nil }

func (c *container) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr == nil {
		return ""
	}
	logs, err := c.ctr.Logs(context.Background())
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs) // what can be had of it
	return string(text[max(0, len(text)-2000):])
}

// daemonHost is where the containers' published ports are reached.
func daemonHost() (string, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer provider.Close()
	return provider.DaemonHost(context.Background())
}

// dockerKafka describes a broker in a container. Its port is the same inside
// and outside: it is in the address that the broker gives to clients, and
// stays over a restart.
func dockerKafka(n node, opts KafkaOptions) (addrs []string, r runner, origin string, err error) {
	bind, host := "127.0.0.1", "127.0.0.1"
	if !n.host {
		bind = "0.0.0.0"
		if host, err = daemonHost(); err != nil {
			return nil, nil, "", err
		}
	}
	props := n.properties(bind, host)
	for k, v := range opts.Config {
		props[k] = v
	}
	env := map[string]string{"CLUSTER_ID": n.cluster}
	for k, v := range props {
		// The image's spelling of a setting.
		env["KAFKA_"+strings.ToUpper(strings.NewReplacer(".", "_", "-", "__").Replace(k))] = v
	}
	published := network.MustParsePort(fmt.Sprintf("%d/tcp", n.port))
	c := &container{image: kafkaImage(), opts: []testcontainers.ContainerCustomizer{
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
		c.opts = append(c.opts, testcontainers.WithExposedPorts(published.String()))
	}
	return []string{net.JoinHostPort(host, strconv.Itoa(n.port))}, c, "docker, " + c.image, nil
}

// dockerRedis describes a server in a container that has the machine's
// network and keeps its data in dir, as our user, so that both can be used
// like those of a process.
func dockerRedis(dir string, args []string) (r runner, origin string, err error) {
	c := &container{image: redisImage, opts: []testcontainers.ContainerCustomizer{
		testcontainers.WithCmd(append([]string{"redis-server"}, args...)...),
		testcontainers.WithConfigModifier(func(c *dockercontainer.Config) {
			c.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
		}),
		testcontainers.WithHostConfigModifier(func(h *dockercontainer.HostConfig) {
			h.NetworkMode = "host"
			h.Binds = []string{dir + ":/data"}
		}),
	}}
	return c, "docker, " + c.image, nil
}

// moduleRedis starts the shared server, whose port Docker chooses.
func moduleRedis() (addr, origin string, err error) {
	ctx, cancel := startContext()
	defer cancel()
	ctr, err := tcredis.Run(ctx, redisImage)
	if err != nil {
		if ctr != nil { // created, but not started
			_ = testcontainers.TerminateContainer(ctr)
		}
		return "", "", fmt.Errorf("start Redis from docker: %w", err)
	}
	atEnd(func() { _ = testcontainers.TerminateContainer(ctr) })
	addr, err = ctr.PortEndpoint(ctx, "6379/tcp", "")
	return addr, "docker, " + redisImage, err
}
