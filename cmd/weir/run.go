package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/cmd/weir/node"
	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/config"
)

func newRunCommand() *cobra.Command {
	var (
		file      string
		roleNames []string
		check     bool
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Apply events and answer questions",
		Long: `Apply the events of Kafka's topics to Redis and answer questions over HTTP.

Start as many processes as there is work for: processors of one group share the
topics' partitions, and every API answers the same. The first SIGINT or SIGTERM
lets what is under way finish; a second one ends the process at once. SIGUSR1
makes it log more, down to debug; SIGUSR2 restores the level of the settings.
SIGHUP changes nothing: definitions, tokens and certificates are read again when
their files change, passwords at each login, other settings when the process starts.

Every setting of the file has an environment variable and, passwords apart, a
flag as well: kafka.group is WEIR_KAFKA_GROUP and --kafka.group.`,
		Example: `  weir run --config config/weir.yaml --check
  weir run --config config/weir.yaml --roles processor --kafka.brokers kafka-1:9092,kafka-2:9092`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			roles, err := node.ParseRoles(roleNames)
			if err != nil {
				return err
			}
			cfg, err := config.Load(file, cmd.Flags())
			if err != nil {
				return err
			}
			registry, err := loadOf(cfg, file, cmd)
			if err != nil {
				return err
			}
			log, level := node.NewLogger(cmd.ErrOrStderr(), cfg.Log)
			defer node.FollowSignals(level, log, say.IsTerminal(cmd.ErrOrStderr()))()
			connect.LogStoreClient(log)
			if check {
				return node.Check(cmd.Context(), cmd.OutOrStdout(), cfg, registry, roles)
			}
			n, err := node.New(cfg, registry, roles, thisBuild(), log)
			if err != nil {
				return err
			}
			log.Info("weir is running", "version", version(), "roles", strings.Join(roleNames, ","), "namespace", cfg.Namespace,
				"definitions", say.Summary(registry), "kafka", cfg.Kafka.Brokers, "redis", cfg.Redis.Addresses, "listen", n.Addr())
			err = n.Run(cmd.Context())
			log.Info("weir has stopped")
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "file of settings (default the one in WEIR_CONFIG); see config/weir.yaml")
	cmd.Flags().StringSliceVar(&roleNames, "roles", []string{"processor", "api"}, "what to do: processor, api or both")
	cmd.Flags().BoolVar(&check, "check", false, "check the settings, Kafka and Redis, report the result, and end")
	completeFlag(cmd, "roles", cobra.FixedCompletions([]cobra.Completion{"processor", "api", "processor,api"}, cobra.ShellCompDirectiveNoFileComp))
	config.Flags(cmd.Flags())
	return cmd
}
