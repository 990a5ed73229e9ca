package server

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Container is a server in a Docker container that can be restarted.
type Container struct {
	Image string
	Opts  []testcontainers.ContainerCustomizer

	mu  sync.Mutex
	ctr *testcontainers.DockerContainer
}

// Start starts the container, also after End.
func (c *Container) Start() error {
	ctx, cancel := StartContext()
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr != nil {
		return c.ctr.Start(ctx)
	}
	ctr, err := testcontainers.Run(ctx, c.Image, c.Opts...)
	c.ctr = ctr
	return err
}

// End stops the container and keeps it, with its files, for the next start.
func (c *Container) End(sig syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr == nil {
		return nil
	}
	ctx, cancel := StartContext()
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
	detail, ok := Poll(endWithin, func() (bool, string) {
		state, err := c.ctr.State(ctx)
		if err != nil {
			return false, err.Error()
		}
		return !state.Running, string(state.Status)
	})
	if !ok {
		return fmt.Errorf("container of %s did not end within %v of %v: %s", c.Image, endWithin, sig, detail)
	}
	return nil
}

// sendTo sends a signal to a container's first process.
func sendTo(ctx context.Context, api *testcontainers.DockerClient, c *testcontainers.DockerContainer, sig syscall.Signal) error {
	_, err := api.ContainerKill(ctx, c.GetContainerID(), client.ContainerKillOptions{Signal: strconv.Itoa(int(sig))})
	return err
}

// Signal sends a signal to the container's first process.
func (c *Container) Signal(sig syscall.Signal) error {
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

// Remove removes the container and its files.
func (c *Container) Remove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctr != nil {
		_ = testcontainers.TerminateContainer(c.ctr, testcontainers.StopTimeout(0))
		c.ctr = nil
	}
}

// Gone is never closed: if a container ends while it starts, the deadline of the start expires.
func (c *Container) Gone() <-chan struct{} { return nil }

// Log returns the last lines that the container wrote.
func (c *Container) Log() string {
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
	text, _ := io.ReadAll(logs) // as much as can be read
	return string(text[max(0, len(text)-2000):])
}

// DaemonHost returns the host at which the containers' published ports are reached.
func DaemonHost() (string, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer provider.Close()
	return provider.DaemonHost(context.Background())
}
