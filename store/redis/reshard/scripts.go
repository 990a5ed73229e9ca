package reshard

import (
	_ "embed"
)

// A process that hung while another one started over or finished must change nothing when it continues. So each write
// that could affect others is a script that compares a token.
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
	//go:embed retire.lua
	retireLua string
)
