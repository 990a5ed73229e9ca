package fetch

import (
	"slices"
	"sync"
	"time"
)

// A leader that is cut off from the controller continues as if it led, and answers that there is nothing new. Its
// answers do not show the election, but other brokers know of it.

// askedAtOnce is how many brokers are asked for newer leaders at a time.
const askedAtOnce = 3

// checkLeaders is the loop that looks for newer leaders of the positions: those of a later epoch.
func (p *Poller) checkLeaders() {
	ticker := time.NewTicker(leaderCheck)
	defer ticker.Stop()
	for turn := 0; ; {
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
			return
		}
		topics := p.topics()
		if len(topics) == 0 {
			continue
		}
		// Any broker can list the brokers, also one that is cut off.
		found, err := p.metadata(p.ctx, AnyBroker, topics)
		if err != nil || len(found.brokers) < 2 {
			continue
		}
		p.takeNewer(found)
		var asking sync.WaitGroup
		for range min(askedAtOnce, len(found.brokers)) {
			broker := found.brokers[turn%len(found.brokers)]
			turn++
			asking.Go(func() {
				if found, err := p.metadata(p.ctx, broker, topics); err == nil {
					p.takeNewer(found)
				}
			})
		}
		asking.Wait()
	}
}

// topics returns those of the positions.
func (p *Poller) topics() (topics []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pos := range p.positions {
		if !slices.Contains(topics, pos.Topic) {
			topics = append(topics, pos.Topic)
		}
	}
	return topics
}

// takeNewer gives positions the leaders that a broker names if these are newer than theirs.
func (p *Poller) takeNewer(found leaderships) {
	var newer []unverified
	p.mu.Lock()
	for _, pos := range p.positions {
		at, err := found.leader(pos.Partition)
		if err != nil || pos.stopped || pos.epoch < 0 || at.topicID != pos.id || at.epoch <= pos.epoch {
			continue
		}
		p.cfg.Logger.Warn("a broker names a newer leader of a partition than the one that it is fetched from; going on there",
			"topic", pos.Topic, "partition", pos.ID, "leader", at.broker, "epoch", at.epoch, "fetched_epoch", pos.epoch)
		if until, epoch := pos.needs(); epoch < 0 {
			p.attach(pos, at)
		} else {
			newer = append(newer, unverified{pos, pos.generation, pos.offset, until, epoch, at})
		}
	}
	p.mu.Unlock()
	p.verify(newer)
}
