package kafkatest

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-stream/weir/internal/testkit/server"
)

//go:embed pom.xml
var pom []byte

// Jars returns the jars of a broker.
func Jars() *server.Jars {
	return &server.Jars{Name: "kafka", POM: pom, Witness: "kafka_2.13-", Env: "WEIR_KAFKA_HOME"}
}

func version() string { return Jars().Version() }

func lackJava() error { return Jars().Lack() }

// onMachine prepares a broker in dir, and its storage in data.
func onMachine(dir, data string, n node, opts Options) (addrs []string, r server.Runner, origin string, err error) {
	home, err := Jars().Fetch()
	if err != nil {
		return nil, nil, "", err
	}
	props := n.properties("127.0.0.1", "127.0.0.1")
	props["log.dirs"] = data
	for k, v := range opts.Config {
		if more, ok := strings.CutPrefix(k, "+"); ok {
			k, v = more, props[more]+","+v
		}
		props[k] = v
	}
	file := filepath.Join(dir, "server.properties")
	if err := os.WriteFile(file, []byte(propertiesText(props)), 0o600); err != nil {
		return nil, nil, "", err
	}
	java := func(args ...string) *server.Process {
		return server.NewProcess(dir, "java", slices.Concat(opts.jvm(), []string{
			"-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(home, "*"),
		}, args)...)
	}
	known := filepath.Join(home, checkpoint)
	if _, lacks := os.Stat(known); n.controller != 0 && lacks != nil {
		tool := java("kafka.tools.StorageTool", "format", "--cluster-id", n.cluster, "--config", file)
		if err := formatStorage(tool, data, known); err != nil {
			return nil, nil, "", err
		}
	}
	if err := n.name(data); err != nil {
		return nil, nil, "", err
	}
	if n.controller != 0 {
		if err := copyFile(filepath.Join(data, checkpoint), known); err != nil {
			return nil, nil, "", err
		}
	}
	flags := opts.recorded
	if flags == nil {
		flags = server.Archive(home, record)
	}
	addrs = []string{fmt.Sprintf("127.0.0.1:%d", n.port)}
	return addrs, java(append(flags, "kafka.Kafka", file)...), "local java, version " + version(), nil
}

// record starts a broker whose classes are archived.
func record(dir, flag string) (*server.Process, error) {
	b := &Broker{}
	if err := b.init(server.Local, dir, Options{recorded: []string{flag}}); err != nil {
		return nil, err
	}
	p := b.runner.(*server.Process)
	err := b.waitReady()
	if err != nil {
		p.Remove()
	}
	return p, err
}

// checkpoint is what the storage of a controller begins with: the versions of its cluster's features. It is the same for all, so
// Kafka's own tool, which takes as long as the start of a broker, writes it once for this machine.
const checkpoint = "bootstrap.checkpoint"

// formatStorage formats the storage in data and keeps its checkpoint as a file.
func formatStorage(tool *server.Process, data, file string) error {
	if err := tool.Start(); err != nil {
		return err
	}
	<-tool.Gone()
	if err := copyFile(file, filepath.Join(data, checkpoint)); err != nil {
		return fmt.Errorf("format Kafka's storage: %w\n%s", err, tool.Log())
	}
	return nil
}

// copyFile copies a file to another that is there as a whole or not at all, because the tests of several packages may run this
// concurrently.
func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".")
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	if err = cmp.Or(err, part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), to)
}

// jvm returns the JVM flags of the broker.
func (o Options) jvm() []string {
	if o.Issuer != nil { // a broker calls only the URLs that its command line allows
		allowed := "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + o.Issuer.KeysURL
		o.Issuer = nil
		return append(o.jvm(), allowed)
	}
	if o.Kerberos != nil {
		realms := "-Djava.security.krb5.conf=" + o.Kerberos.Config
		o.Kerberos = nil
		return append(o.jvm(), realms)
	}
	if o.ACLs { // their decisions are logged
		o.ACLs = false
		return append(o.jvm(), "-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=debug")
	}
	if o.Loaded { // as in kafka-server-start.sh and kafka-run-class.sh
		return []string{"-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
			"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"}
	}
	// The broker has a few small topics. It should start fast, and several should fit beside the
	// tests.
	return []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
}

func propertiesText(props map[string]string) string {
	lines := make([]string, 0, len(props))
	for k, v := range props {
		lines = append(lines, k+"="+strings.ReplaceAll(v, "\n", `\n`)+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
