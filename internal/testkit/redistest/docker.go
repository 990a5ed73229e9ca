package redistest

import (
	"fmt"
	"os"

	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	tcredis "github.com/testcontainers/testcontainers-go/modules/redis"

	"github.com/weir-stream/weir/internal/testkit/server"
)

const image = "redis:7"

// inDocker describes a server in a container that uses the machine's network and keeps its data in
// dir as our user, so that a test can use both like those of a process.
func inDocker(dir string, args []string) (r server.Runner, origin string, err error) {
	c := &server.Container{Image: image, Opts: []testcontainers.ContainerCustomizer{
		testcontainers.WithCmd(append([]string{"redis-server"}, args...)...),
		testcontainers.WithConfigModifier(func(c *dockercontainer.Config) {
			c.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
		}),
		testcontainers.WithHostConfigModifier(func(h *dockercontainer.HostConfig) {
			h.NetworkMode = "host"
			h.Binds = []string{dir + ":/data"}
		}),
	}}
	return c, "docker, " + c.Image, nil
}

// sharedInDocker starts the shared server on a port that Docker chooses.
func sharedInDocker() (addr, origin string, err error) {
	ctx, cancel := server.StartContext()
	defer cancel()
	ctr, err := tcredis.Run(ctx, image)
	if err != nil {
		if ctr != nil { // created but not started
			_ = testcontainers.TerminateContainer(ctr)
		}
		return "", "", fmt.Errorf("start Redis from docker: %w", err)
	}
	server.AtEnd(func() { _ = testcontainers.TerminateContainer(ctr) })
	addr, err = ctr.PortEndpoint(ctx, "6379/tcp", "")
	return addr, "docker, " + image, err
}
