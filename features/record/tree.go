package record

// Node is a path in the records of a topic that a stream reads. The nodes of a topic form a tree,
// whose root is the record itself; a scanner puts the value that it finds for a node into the
// node's slot.
type Node struct {
	name     string
	children []*Node
	parent   *Node
	// slot is the node's own; those of the nodes below it follow, up to until.
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
