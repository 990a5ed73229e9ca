package record

// Node is a path in the records of a topic that a stream reads. The nodes of a topic form a tree,
// whose root is the record itself; a scanner puts the value that it finds for a node into the
// node's slot.
type Node struct {
	name     string
	children []*Node
	parent   *Node
	// slot is the node's own slot. The slots of the nodes below it follow, up to until.
	slot, until int
}

// add finds or makes the node at a path below n.
func (n *Node) add(path []string) *Node {
	for _, name := range path {
		child := n.child([]byte(name))
		if child == nil {
			child = &Node{name: name, parent: n}
			n.children = append(n.children, child)
		}
		n = child
	}
	return n
}

func (n *Node) child(name []byte) *Node {
	for _, c := range n.children {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// nextChild is child for the members of a record one after the other; at counts the children found. It sorts the
// children into the order of the last record's members, so that the next search succeeds at once.
func (n *Node) nextChild(name []byte, at *int) *Node {
	for i := *at; i < len(n.children); i++ {
		if c := n.children[i]; c.name == string(name) {
			n.children[i], n.children[*at] = n.children[*at], c
			*at++
			return c
		}
	}
	return n.child(name) // named twice, or unknown
}

// number assigns slots to n and all nodes below it, from the first free one.
func (n *Node) number(free int) int {
	n.slot = free
	free++
	for _, c := range n.children {
		free = c.number(free)
	}
	n.until = free
	return free
}
