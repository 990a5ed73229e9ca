package materialize

import (
	"cmp"
	"io"
	"sync"
	"sync/atomic"
)

// inOrder passes jobs through three steps: next fills a job, one after another; work is done on several jobs
// concurrently; and take takes the jobs in the order in which they were filled. Then a job is filled again, so there are
// never more than these under way. It ends when next returns io.EOF, or with the first error in that order.
func inOrder[J any](jobs []J, next, work, take func(J) error) error {
	type begun struct {
		job  J
		done chan error
	}
	free, begin, stop := make(chan J, len(jobs)), make(chan begun, len(jobs)), make(chan struct{})
	for _, j := range jobs {
		free <- j
	}
	var running sync.WaitGroup
	running.Go(func() {
		defer close(begin)
		for {
			b := begun{done: make(chan error, 1)}
			select {
			case <-stop:
				return
			case b.job = <-free:
			}
			err := next(b.job)
			begin <- b
			if err != nil {
				b.done <- err
				return
			}
			running.Go(func() { b.done <- work(b.job) })
		}
	})
	defer running.Wait()
	defer close(stop)
	for b := range begin {
		err := <-b.done
		if err == nil {
			err = take(b.job)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		free <- b.job
	}
	return nil
}

// together does n tasks concurrently, and returns the first error by index. Each worker does one task after another.
func together(workers, n int, do func(worker, task int) error) error {
	errs := make([]error, n)
	var begun atomic.Int64
	work := func(worker int) {
		for i := int(begun.Add(1)) - 1; i < n; i = int(begun.Add(1)) - 1 {
			errs[i] = do(worker, i)
		}
	}
	var running sync.WaitGroup
	for worker := 1; worker < min(workers, n); worker++ {
		running.Go(func() { work(worker) })
	}
	work(0)
	running.Wait()
	return cmp.Or(errs...)
}
