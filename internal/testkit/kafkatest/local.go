package kafkatest

import (
	"cmp"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/weir-stream/weir/internal/testkit/server"
)

//go:embed install.sh pom.xml
var files embed.FS

// version returns the version that pom.xml names.
var version = sync.OnceValue(func() string {
	pom, err := files.ReadFile("pom.xml")
	if err != nil {
		panic(err) // cannot happen: the file is embedded
	}
	return string(regexp.MustCompile(`<kafka\.version>(.*)</kafka\.version>`).FindSubmatch(pom)[1])
})

// lackJava says what a local Kafka lacks. Jars that can be fetched do not count as missing.
func lackJava() error {
	if err := server.LackCommand("java", "a Java runtime, 17 or later"); err != nil {
		return err
	}
	home, err := homeDir()
	if err != nil {
		return err
	}
	if _, err := os.Stat(jar(home)); err == nil {
		return nil
	}
	if err := server.LackCommand("mvn", "Maven"); err != nil {
		return fmt.Errorf("%w, or set WEIR_KAFKA_HOME to a directory with Kafka's jars", err)
	}
	return nil
}

func jar(home string) string {
	return filepath.Join(home, "kafka_2.13-"+version()+".jar")
}

// homeDir returns the directory of the jars, the same as in install.sh.
func homeDir() (string, error) {
	if home := os.Getenv("WEIR_KAFKA_HOME"); home != "" {
		return home, nil
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "weir", "kafka-"+version()), nil
}

// install returns the directory of the jars, and fetches them if necessary.
var install = sync.OnceValues(func() (string, error) {
	home, err := homeDir()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(jar(home)); err == nil {
		return home, nil
	}
	dir, err := os.MkdirTemp("", server.DirPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, files); err != nil {
		return "", err
	}
	out, err := exec.Command("bash", filepath.Join(dir, "install.sh")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("internal/testkit/kafkatest/install.sh: %w\n%s", err, out)
	}
	return home, nil
})

// onMachine prepares a broker in dir, and its storage in data.
func onMachine(dir, data string, n node, opts Options) (addrs []string, r server.Runner, origin string, err error) {
	home, err := install()
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
	addrs = []string{fmt.Sprintf("127.0.0.1:%d", n.port)}
	return addrs, java("kafka.Kafka", file), "local java, version " + version(), nil
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
