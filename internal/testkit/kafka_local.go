package testkit

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

//go:embed kafka/install.sh kafka/pom.xml
var kafkaFiles embed.FS

// kafkaVersion is the version that kafka/pom.xml names.
var kafkaVersion = sync.OnceValue(func() string {
	pom, err := kafkaFiles.ReadFile("kafka/pom.xml")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(regexp.MustCompile(`<kafka\.version>(.*)</kafka\.version>`).FindSubmatch(pom)[1])
})

// lackLocalKafka tells what local Kafka lacks. Jars that are not there yet
// but can be fetched are no lack.
func lackLocalKafka() error {
	if err := lackCommand("java", "a Java runtime, 17 or later"); err != nil {
		return err
	}
	home, err := kafkaHome()
	if err != nil {
		return err
	}
	if _, err := os.Stat(kafkaJar(home)); err == nil {
		return nil
	}
	if err := lackCommand("mvn", "Maven"); err != nil {
		return fmt.Errorf("%w, or set WEIR_KAFKA_HOME to a directory with Kafka's jars", err)
	}
	return nil
}

func kafkaJar(home string) string {
	return filepath.Join(home, "kafka_2.13-"+kafkaVersion()+".jar")
}

// kafkaHome is the directory of the jars, as in kafka/install.sh.
func kafkaHome() (string, error) {
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
	return filepath.Join(cache, "weir", "kafka-"+kafkaVersion()), nil
}

// installKafka returns the directory of the jars, fetched if need be.
var installKafka = sync.OnceValues(func() (string, error) {
	home, err := kafkaHome()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(kafkaJar(home)); err == nil {
		return home, nil
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, kafkaFiles); err != nil {
		return "", err
	}
	out, err := exec.Command("bash", filepath.Join(dir, "kafka", "install.sh")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kafka/install.sh: %w\n%s", err, out)
	}
	return home, nil
})

// localKafka lays out a broker in dir, and its storage in data.
func localKafka(dir, data string, n node, opts KafkaOptions) (addrs []string, r runner, origin string, err error) {
	home, err := installKafka()
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
	java := func(args ...string) *process {
		return newProcess(dir, "java", slices.Concat(opts.jvm(), []string{
			"-XX:-UsePerfData", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join(home, "*"),
		}, args)...)
	}
	if n.controller == 0 {
		err = n.name(data)
	} else {
		err = formatStorage(java("kafka.tools.StorageTool", "format", "--cluster-id", n.cluster, "--config", file), data)
	}
	if err != nil {
		return nil, nil, "", err
	}
	addrs = []string{fmt.Sprintf("127.0.0.1:%d", n.port)}
	return addrs, java("kafka.Kafka", file), "local java, version " + kafkaVersion(), nil
}

func formatStorage(tool *process, data string) error {
	if err := tool.start(); err != nil {
		return err
	}
	<-tool.gone()
	if _, err := os.Stat(filepath.Join(data, metaProperties)); err != nil {
		return fmt.Errorf("format Kafka's storage:\n%s", tool.log())
	}
	return nil
}

// jvm is how Java runs the broker.
func (o KafkaOptions) jvm() []string {
	if o.Issuer != nil { // a broker asks none but those that its command line allows
		allowed := "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=" + o.Issuer.KeysURL
		o.Issuer = nil
		return append(o.jvm(), allowed)
	}
	if o.Loaded { // as kafka-server-start.sh and kafka-run-class.sh have it
		return []string{"-Xmx1G", "-Xms1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
			"-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"}
	}
	// A broker of a few small topics: what counts is how fast it starts, and that
	// several fit beside the tests.
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
