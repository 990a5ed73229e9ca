package config

import "embed"

// Shipped holds the definitions that come with Weir, in the folder "features".
//
//go:embed features/*.yaml
var Shipped embed.FS
