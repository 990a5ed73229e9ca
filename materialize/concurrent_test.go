package materialize

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// job is filled with a number.
type job struct{ n int }

// Jobs are taken in their order, however long the work on each lasts, several are worked on at a time, and there are
// never more than the given ones.
func TestInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, n = 4, 200
		var began, taken, working, most atomic.Int32
		var got []int
		err := inOrder([]*job{{}, {}, {}, {}}, func(j *job) error {
			if j.n = int(began.Load()); j.n == n {
				return io.EOF
			}
			if ahead := began.Add(1) - taken.Load(); ahead > jobs {
				t.Errorf("%d jobs are under way", ahead)
			}
			return nil
		}, func(j *job) error {
			most.Store(max(most.Load(), working.Add(1)))
			time.Sleep(time.Duration(rand.IntN(1000)))
			working.Add(-1)
			return nil
		}, func(j *job) error {
			taken.Add(1)
			got = append(got, j.n)
			return nil
		})
		if err != nil || len(got) != n || !slices.IsSorted(got) {
			t.Errorf("error %v, took %d jobs: %d", err, len(got), got)
		}
		if most.Load() < 2 {
			t.Error("one job waited for another")
		}
	})
}

// The first error by the order of the jobs counts, in whichever step, and no goroutine is left.
func TestFirstErrorInOrder(t *testing.T) {
	const never = 1000
	for _, c := range []struct{ next, work, take, want int }{
		{20, never, never, 20}, {never, 7, never, 7}, {never, never, 3, 3}, {9, 8, never, 8}, {8, 9, never, 8}, {never, 5, 4, 4}, {never, 4, 5, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := -1
			fails := func(n, from int) error {
				if n >= from {
					return fmt.Errorf("job %d", n)
				}
				return nil
			}
			err := inOrder([]*job{{}, {}, {}}, func(j *job) error {
				n++
				j.n = n
				return fails(n, c.next)
			}, func(j *job) error {
				if j.n == c.work {
					time.Sleep(time.Second) // later ones fail first
				}
				return fails(j.n, c.work)
			}, func(j *job) error { return fails(j.n, c.take) })
			if want := fmt.Sprint("job ", c.want); fmt.Sprint(err) != want {
				t.Errorf("%+v: error %v, want %s", c, err, want)
			}
		})
	}
}

// All tasks are done once, no worker has two at a time, and the first error by index counts.
func TestTogether(t *testing.T) {
	const workers, n = 3, 50
	var done [n]atomic.Int32
	var busy [workers]atomic.Bool
	err := together(workers, n, func(worker, task int) error {
		if busy[worker].Swap(true) {
			t.Errorf("worker %d has two tasks", worker)
		}
		defer busy[worker].Store(false)
		done[task].Add(1)
		if task >= 10 {
			return fmt.Errorf("task %d", task)
		}
		return nil
	})
	if fmt.Sprint(err) != "task 10" {
		t.Errorf("error %v, want that of task 10", err)
	}
	for i := range done {
		if done[i].Load() != 1 {
			t.Errorf("task %d was done %d times", i, done[i].Load())
		}
	}
	if err := together(workers, 0, func(int, int) error { return errors.New("a task") }); err != nil {
		t.Error(err)
	}
}
