// Package serve answers questions about features over HTTP. openapi.yaml is its contract: all paths, with what they take
// and answer. docs/questions.md explains it.
//
// A question is answered in these steps, the same in all formats (see codec):
//
//	handler.question     admits it, reads the request and writes the response, or the refusal
//	codec.read           finds the parts of the request in a body; readQuery finds them in a URL
//	asked.understand     reads the parts by the table of options, each checked and allowed, and names the entities
//	waitForEvent         waits until the record of wait_for is applied
//	findOldest           finds the features whose state does not reach back to the moment
//	codec.addReads       lists what the others need
//	readWithHistory      reads the state, and then the history, which says since when the state is complete
//	codec.encode         computes the answers and writes them
//
// Each leaves a value for the next: request, asked, found and answer, see question. Whoever adds an option adds its row to
// the table in options.go.
//
// A question reads all that it needs in one round trip to the store, equal reads once; multi-hop features take a second.
// An answer is complete or an error (see reply.Error).
package serve
