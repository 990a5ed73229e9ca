package aggregate

// All lists the functions. It is the only list of them: the loader, the documentation and the
// conformance tests read it.
var All = []Function{
	count{},
	sum{},
	avg{},
	least{},
	greatest{},
	countDistinct{},
	countDistinctLastSeen{},
	countDistinctHLL{},
	approxCountDistinct{},
	deviation{name: "variance", sample: true},
	deviation{name: "var_samp", sample: true},
	deviation{name: "var_pop"},
	deviation{name: "stddev", sample: true, root: true},
	deviation{name: "stddev_samp", sample: true, root: true},
	deviation{name: "stddev_pop", root: true},
	set{},
	seen{},
	first{},
	last{},
	firstK{},
	lastK{},
	lastDistinctK{},
	lag{},
	diff{},
	timeSinceFirst{},
	timeSinceLast{},
	idleSince{},
	active{},
	mode{},
	topK{},
	entropy{},
	histogram{},
	quantile{},
	ratio{},
	streak{},
	expDecaySum{},
	distance{},
	speed{},
}

// Find returns the function with that name and method. An empty method means the default one, that
// of the first function with the name.
func Find(name, method string) (Function, bool) {
	for _, f := range All {
		s := f.Spec()
		if s.Name == name && (method == "" || s.Method == method) {
			return f, true
		}
	}
	return nil, false
}
