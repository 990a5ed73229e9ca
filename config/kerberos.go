package config

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/client"
	krbconfig "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
)

// kerberosLogin logs in by Kerberos, as the user of a keytab. Both files are read at each login, and each login gets
// its own ticket.
type kerberosLogin struct {
	Kerberos
	user string
}

// Name returns the mechanism's.
func (kerberosLogin) Name() string { return "GSSAPI" }

// Authenticate begins a login at a broker, host:port.
func (k kerberosLogin) Authenticate(ctx context.Context, broker string) (sasl.Session, []byte, error) {
	session, first, err := kerberos.Kerberos(k.ticket).Authenticate(ctx, broker)
	if err != nil {
		err = fmt.Errorf("kafka.sasl.kerberos: no ticket of %s for %s at %s: %w", k.user, k.Service, broker, err)
	}
	return session, first, err
}

// ticket returns what is needed to request a ticket.
func (k kerberosLogin) ticket(context.Context) (kerberos.Auth, error) {
	realms, err := krbconfig.Load(k.Config)
	if err != nil {
		return kerberos.Auth{}, err
	}
	keys, err := keytab.Load(k.Keytab)
	if err != nil {
		return kerberos.Auth{}, err
	}
	realm := cmp.Or(k.Realm, realms.LibDefaults.DefaultRealm)
	// Active Directory does not support FAST, and does not answer requests that use it.
	user := client.NewWithKeytab(k.user, realm, keys, realms, client.DisablePAFXFAST(true))
	return kerberos.Auth{Client: user, Service: k.Service}, nil
}
