package record

import "bytes"

// Node is a path in the records of a topic that a stream reads. The nodes of a topic form a tree,
// whose root is the record itself; a scanner puts the value that it finds for a node into the
// node's slot.
type Node struct {
	name     string
	member   []byte // how a member of this name begins in JSON: "name": without white space; nil if not yet found
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

// beginning finds the child with whose name and colon data begins, if they are written without escapes and white space
// and the child comes in order, as most do: no name must be scanned then. It returns nil otherwise. For at see following.
func (n *Node) beginning(data []byte, at *int) *Node {
	for i := *at; i < len(n.children); i++ {
		if c := n.children[i]; c.member != nil && bytes.HasPrefix(data, c.member) {
			*at = i + 1
			return c
		}
	}
	return nil
}

// following is child for the members of a record one after the other; at is the index after that of the last one found.
// Children are kept in the order in which records have them: one before the last one found is moved behind it. So the
// next is usually the first one tried, also in records that lack some.
func (n *Node) following(name []byte, at *int) *Node {
	for i := *at; i < len(n.children); i++ {
		if c := n.children[i]; c.name == string(name) {
			*at = i + 1
			return c
		}
	}
	for i, c := range n.children[:*at] {
		if c.name == string(name) {
			copy(n.children[i:], n.children[i+1:*at])
			n.children[*at-1] = c
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
