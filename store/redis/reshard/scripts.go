package reshard

import (
	_ "embed"
)

// A process that hung while another one started over or finished must change nothing when it continues. So each write
// that could affect others is a script that compares a token, or what else shows that no other has finished.
//
// A shard in use has no mark that a process could compare. So each shard keeps the token of the process that took it last
// (keyspace.ResharderField), also once it is in use. A process reads these tokens, then claims the layout, and takes only
// shards that have the same tokens still. If another has switched over since, it claimed the layout later and has taken
// all shards, so they have its token.
var (
	//go:embed begin.lua
	beginLua string
	//go:embed reserve.lua
	reserveLua string
	//go:embed copy.lua
	copyLua string
	//go:embed take.lua
	takeLua string
	//go:embed freeze.lua
	freezeLua string
	//go:embed finish.lua
	finishLua string
	//go:embed switch.lua
	switchLua string
	//go:embed name.lua
	nameLua string
	//go:embed restart.lua
	restartLua string
	//go:embed release.lua
	releaseLua string
	//go:embed mark.lua
	markLua string
	//go:embed delete.lua
	deleteLua string
	//go:embed forget.lua
	forgetLua string
	//go:embed retire.lua
	retireLua string
)
