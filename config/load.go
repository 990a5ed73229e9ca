package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Finding is one mistake in the settings.
type Finding struct {
	Where   string // file:line, environment variable or flag
	Key     string // of the setting, empty for a whole file
	Message string
}

// String returns where, key and message, with ": " after the place.
func (f Finding) String() string {
	text := strings.TrimSpace(f.Key + " " + f.Message)
	if f.Where != "" {
		text = f.Where + ": " + text
	}
	return text
}

// Findings is the error of Load: all mistakes, one on each line.
type Findings []Finding

func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

// Default returns the configuration without file, environment and flags.
func Default() *Config {
	c := new(Config)
	for key, value := range readDocument("weir.yaml", reference).values {
		if err := parse(c.field(key), value); err != nil {
			panic(fmt.Sprintf("config: weir.yaml: %s: %v", key, err))
		}
	}
	return c
}

// Flags adds a flag for every setting except passwords, which any user of the machine could read
// from the command line. A flag is named by the setting's key; Load reads them. --features adds to those before it, and
// of other flags that are given several times the last one counts.
func Flags(flags *pflag.FlagSet) {
	d, types := readDocument("weir.yaml", reference), new(Config)
	for _, key := range keys {
		if isSecret(types.field(key)) {
			continue
		}
		text := strings.NewReplacer("\n# ", " ", "# ", "", "`", "").Replace(d.comments[key])
		usage, _, _ := strings.Cut(text, ". ")
		usage = strings.TrimSuffix(usage, ".")
		if key == "features" {
			flags.Var(new(addedUp), key, usage)
		} else {
			flags.String(key, "", usage)
		}
		flags.Lookup(key).Annotations = map[string][]string{annotation: nil}
		if text, _ := d.values[key].(string); text == "false" {
			flags.Lookup(key).NoOptDefVal = "true"
		}
	}
}

// annotation marks the flags of settings.
const annotation = "weir_setting"

// IsSetting reports whether Flags has added a flag.
func IsSetting(f *pflag.Flag) bool {
	_, ok := f.Annotations[annotation]
	return ok
}

// SecretVariable returns the environment variable of a setting without a flag: a password, a secret or a token.
func SecretVariable(key string) (name string, ok bool) {
	if !slices.Contains(keys, key) || !isSecret(new(Config).field(key)) {
		return "", false
	}
	return envName(key), true
}

// FileVariable is the environment variable with the name of the file of settings, where none is given.
const FileVariable = "WEIR_CONFIG"

// Load reads the settings: the file, or the one that FileVariable names if file is empty; then the environment; then
// the flags, which may be nil. Passwords are read from their files. The error is Findings with all
// mistakes, or says why the file could not be read.
func Load(file string, flags *pflag.FlagSet) (*Config, error) {
	given, err := readGiven(file)
	if err != nil {
		return nil, err
	}
	findings := append(given.findings, unknownVariables()...)

	v := viper.New()
	for key, value := range readDocument("weir.yaml", reference).values {
		v.SetDefault(key, value)
	}
	if err := v.MergeConfigMap(given.tree()); err != nil {
		return nil, fmt.Errorf("settings: %s: %w", given.name, err)
	}
	for _, key := range keys {
		if err := v.BindEnv(key, envName(key)); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
		if flags != nil && flags.Lookup(key) != nil {
			if err := v.BindPFlag(key, flags.Lookup(key)); err != nil {
				return nil, fmt.Errorf("settings: %w", err)
			}
		}
	}

	c := Default()
	where := func(key string) string { return origin(key, given, flags) }
	var broken []string
	for _, key := range keys {
		value := v.Get(key)
		if err := parse(c.field(key), value); err != nil {
			broken = append(broken, key)
			message := withoutPasswords(fmt.Sprintf("%q %v", value, err))
			if isSecret(c.field(key)) {
				message = err.Error()
			}
			findings = append(findings, Finding{where(key), key, message})
		}
	}
	for _, f := range c.check(broken) {
		f.Where = where(f.Key)
		findings = append(findings, f)
	}
	for _, f := range c.readPasswords() {
		f.Where = where(f.Key)
		findings = append(findings, f)
	}
	if len(findings) > 0 {
		return nil, findings
	}
	return c, nil
}

// CheckDefinitions reports the files and folders of definitions that are not there, where the settings name them. It takes
// what Load took and returned.
func CheckDefinitions(c *Config, file string, flags *pflag.FlagSet) error {
	given, err := readGiven(file)
	if err != nil {
		return err
	}
	var findings Findings
	for _, path := range c.Features {
		if _, err := os.Stat(path); err != nil {
			why := fmt.Sprintf("names %s, which cannot be read: %v", path, errors.Unwrap(err))
			findings = append(findings, Finding{origin("features", given, flags), "features", why})
		}
	}
	if len(findings) > 0 {
		return findings
	}
	return nil
}

// readGiven reads the file of settings, or the one that FileVariable names if file is empty. Without either it is empty.
func readGiven(file string) (*document, error) {
	source := "settings"
	if file == "" {
		file, source = os.Getenv(FileVariable), FileVariable
	}
	if file == "" {
		return &document{}, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return readDocument(file, data), nil
}

// origin returns the source of a setting's value, empty for a default.
func origin(key string, file *document, flags *pflag.FlagSet) string {
	if flags != nil && flags.Changed(key) {
		return "--" + key
	}
	if os.Getenv(envName(key)) != "" {
		return envName(key)
	}
	if line, ok := file.lines[key]; ok {
		return fmt.Sprintf("%s:%d", file.name, line)
	}
	return ""
}

// unknownVariables reports environment variables that look like settings and are not.
func unknownVariables() (findings Findings) {
	known := []string{FileVariable}
	for _, key := range keys {
		known = append(known, envName(key))
	}
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "WEIR_") || foreign.MatchString(name) {
			continue
		}
		if !slices.Contains(known, name) {
			findings = append(findings, Finding{Where: name, Message: "is not a setting" + closest(name, known)})
		}
	}
	return findings
}

// readPasswords reads the passwords from their files.
func (c *Config) readPasswords() (findings Findings) {
	for _, p := range []struct {
		key, file string
		password  *Secret
	}{
		{"kafka.sasl.password_file", c.Kafka.SASL.PasswordFile, &c.Kafka.SASL.Password},
		{"kafka.sasl.oauth.client_secret_file", c.Kafka.SASL.OAuth.ClientSecretFile, &c.Kafka.SASL.OAuth.ClientSecret},
		{"registry.password_file", c.Registry.PasswordFile, &c.Registry.Password},
		{"registry.token_file", c.Registry.TokenFile, &c.Registry.Token},
		{"redis.password_file", c.Redis.PasswordFile, &c.Redis.Password},
		{"ignite.password_file", c.Ignite.PasswordFile, &c.Ignite.Password},
		{"redis.sentinel_password_file", c.Redis.SentinelPasswordFile, &c.Redis.SentinelPassword},
	} {
		if p.file == "" {
			continue
		}
		text, err := os.ReadFile(p.file)
		switch {
		case err != nil:
			findings = append(findings, Finding{Key: p.key, Message: fmt.Sprintf("cannot be read: %v", err)})
		case *p.password != "":
			findings = append(findings, Finding{Key: p.key, Message: "is given as well as the password; omit one of them"})
		default:
			if *p.password = Secret(strings.TrimRight(string(text), "\r\n")); *p.password == "" {
				findings = append(findings, Finding{Key: p.key, Message: fmt.Sprintf("names %s, which is empty", p.file)})
			}
		}
	}
	return findings
}
