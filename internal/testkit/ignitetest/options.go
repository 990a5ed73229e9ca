package ignitetest

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/store/ignite/thin"
)

// The user that persistent nodes know.
const (
	User     = "ignite"
	Password = "ignite"
)

// more returns properties of a node.
func (o *Options) more() string {
	var text strings.Builder
	if o.Persistent || o.Region > 0 {
		region := ""
		if o.Region > 0 {
			region = fmt.Sprintf(`<property name="initialSize" value="%d"/><property name="maxSize" value="%[1]d"/>`, o.Region<<20)
		}
		fmt.Fprintf(&text, `<property name="dataStorageConfiguration"><bean class="org.apache.ignite.configuration.DataStorageConfiguration">
			<property name="walSegmentSize" value="1048576"/>
			<property name="defaultDataRegionConfiguration"><bean class="org.apache.ignite.configuration.DataRegionConfiguration">
				%s<property name="persistenceEnabled" value="%t"/>
			</bean></property></bean></property>`, region, o.Persistent)
	}
	if o.Persistent {
		text.WriteString(`<property name="authenticationEnabled" value="true"/>`)
	}
	text.WriteString(`<property name="cacheConfiguration"><list>`)
	for name, properties := range o.Caches {
		fmt.Fprintf(&text, `<bean class="org.apache.ignite.configuration.CacheConfiguration"><property name="name" value="%s"/>%s</bean>`, name, properties)
	}
	text.WriteString("</list></property>")
	return text.String()
}

// encryption makes the nodes' certificate, and returns properties of their connectors, and how to log in.
func (c *Cluster) encryption(dir string, o *Options) (properties string, login thin.Login, err error) {
	login.Timeout = time.Second
	if o.Persistent {
		login.User, login.Password = User, Password
	}
	if o.Authority == nil {
		return "", login, nil
	}
	keys, trusted := filepath.Join(dir, "keys.p12"), filepath.Join(dir, "trusted.p12")
	c.CA = filepath.Join(dir, "node.pem")
	const password = "secret"
	for _, args := range [][]string{
		{"-genkeypair", "-alias", "node", "-keyalg", "EC", "-groupname", "secp256r1", "-dname", "CN=node", "-ext", "san=ip:127.0.0.1", "-ext", "bc=ca:true", "-keystore", keys},
		{"-exportcert", "-rfc", "-alias", "node", "-file", c.CA, "-keystore", keys},
		{"-importcert", "-noprompt", "-alias", "authority", "-file", o.Authority.CA, "-keystore", trusted},
	} {
		if out, err := exec.Command("keytool", append(args, "-storepass", password, "-storetype", "PKCS12")...).CombinedOutput(); err != nil {
			return "", login, fmt.Errorf("keytool: %w: %s", err, out)
		}
	}
	roots, err := credentials.Authorities(c.CA)
	if err != nil {
		return "", login, err
	}
	pair, err := tls.LoadX509KeyPair(o.Authority.Issue("test"))
	login.TLS = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
	return fmt.Sprintf(`<property name="sslEnabled" value="true"/><property name="sslClientAuth" value="true"/>
		<property name="useIgniteSslContextFactory" value="false"/>
		<property name="sslContextFactory"><bean class="org.apache.ignite.ssl.SslContextFactory">
			<property name="keyStoreFilePath" value="%s"/><property name="keyStorePassword" value="%s"/><property name="keyStoreType" value="PKCS12"/>
			<property name="trustStoreFilePath" value="%s"/><property name="trustStorePassword" value="%[2]s"/><property name="trustStoreType" value="PKCS12"/>
		</bean></property>`, keys, password, trusted), login, err
}

// Activate has a cluster of persistent nodes begin, as an operator does.
func (c *Cluster) Activate() error {
	n := c.Nodes[0]
	conn, err := net.Dial("tcp", n.Address)
	if n.login.TLS != nil {
		conn, err = tls.Dial("tcp", n.Address, n.login.TLS)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	text := func(s string) string {
		return "\x09" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s
	}
	const changeState, active = "\x89\x13", "\x01"
	for _, message := range []string{
		"\x01\x01\x00\x07\x00\x00\x00\x02\x0c\x00\x00\x00\x00" + text(User) + text(Password), // the handshake
		changeState + strings.Repeat("\x00", 8) + active,
	} {
		if _, err := conn.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(message))), message...)); err != nil {
			return err
		}
		var length [4]byte
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return err
		}
		reply := make([]byte, binary.LittleEndian.Uint32(length[:]))
		if _, err := io.ReadFull(conn, reply); err != nil {
			return err
		}
		const failed = 1
		if message[0] == 1 && reply[0] != 1 || message[0] != 1 && reply[8]&failed != 0 {
			return fmt.Errorf("activate: %q", reply)
		}
	}
	return nil
}
