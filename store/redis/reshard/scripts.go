package reshard

import (
	_ "embed"
)

// A process that hung, and wakes up when another has begun again or finished, must change nothing. So each write to what
// others may use by then is a script that compares a token.
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
	//go:embed release.lua
	releaseLua string
)
