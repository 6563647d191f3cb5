package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A member reads and commits by itself until it leaves.
type member struct {
	client *kgo.Client
	done   chan struct{}
	lock   sync.Mutex
	values [][]byte
	owned  map[int32]bool
}

func (p *program) join(_ context.Context, asked *task) (any, error) {
	one := &member{done: make(chan struct{}), owned: map[int32]bool{}}
	change := func(isOwned bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			one.lock.Lock()
			defer one.lock.Unlock()
			for _, partition := range changed[asked.Topic] {
				if isOwned {
					one.owned[partition] = true
				} else {
					delete(one.owned, partition)
				}
			}
		}
	}
	client, err := kgo.NewClient(
		p.seeds, kgo.ConsumerGroup(asked.Group), kgo.ConsumeTopics(asked.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(change(true)), kgo.OnPartitionsRevoked(change(false)),
		kgo.OnPartitionsLost(change(false)), kgo.FetchMaxWait(100*time.Millisecond))
	if err != nil {
		return nil, err
	}
	one.client = client
	p.members = append(p.members, one)
	go one.read()
	return len(p.members) - 1, nil
}

func (m *member) read() {
	defer close(m.done)
	for {
		fetches := m.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		m.lock.Lock()
		fetches.EachRecord(func(one *kgo.Record) { m.values = append(m.values, one.Value) })
		m.lock.Unlock()
	}
}

func (p *program) memberState(_ context.Context, asked *task) (any, error) {
	one := p.members[asked.Member]
	one.lock.Lock()
	defer one.lock.Unlock()
	owned := []int32{}
	for partition := range one.owned {
		owned = append(owned, partition)
	}
	return map[string]any{"owned": owned, "values": one.values}, nil
}

func (p *program) leave(ctx context.Context, asked *task) (any, error) {
	one := p.members[asked.Member]
	err := one.client.CommitUncommittedOffsets(ctx)
	one.client.LeaveGroup()
	one.client.Close()
	<-one.done
	return nil, err
}

func (p *program) groups(ctx context.Context, _ *task) (any, error) {
	listed, err := p.admin.ListGroups(ctx)
	if err != nil {
		return nil, err
	}
	return listed.Groups(), nil
}

func (p *program) group(ctx context.Context, asked *task) (any, error) {
	response, err := p.admin.DescribeGroups(ctx, asked.Group)
	if err != nil {
		return nil, err
	}
	one := response[asked.Group]
	return map[string]any{"state": strings.ToLower(one.State), "members": len(one.Members)}, one.Err
}

func (p *program) committed(ctx context.Context, asked *task) (any, error) {
	response, err := p.admin.FetchOffsets(ctx, asked.Group)
	if err != nil {
		return nil, err
	}
	offsets := map[int32]int64{}
	for partition, one := range response[asked.Topic] {
		offsets[partition] = one.At
	}
	return offsets, nil
}

func (p *program) deleteGroup(ctx context.Context, asked *task) (any, error) {
	done, err := p.admin.DeleteGroups(ctx, asked.Group)
	if err != nil {
		return nil, err
	}
	return nil, done[asked.Group].Err
}
