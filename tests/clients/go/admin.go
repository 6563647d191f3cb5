package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (p *program) createTopic(ctx context.Context, asked *task) (any, error) {
	configs := map[string]*string{}
	for name, value := range asked.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	_, err := p.admin.CreateTopic(ctx, int32(asked.Count), asked.Replicas, configs, asked.Topic)
	return nil, err
}

func (p *program) deleteTopic(ctx context.Context, asked *task) (any, error) {
	_, err := p.admin.DeleteTopic(ctx, asked.Topic)
	return nil, err
}

func (p *program) createPartitions(ctx context.Context, asked *task) (any, error) {
	done, err := p.admin.UpdatePartitions(ctx, asked.Count, asked.Topic)
	if err != nil {
		return nil, err
	}
	return nil, done.Error()
}

func (p *program) topics(ctx context.Context, _ *task) (any, error) {
	type placed struct {
		Leader   int32   `json:"leader"`
		Replicas []int32 `json:"replicas"`
		Isr      []int32 `json:"isr"`
	}
	response, err := p.admin.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	topics := map[string]map[int32]placed{}
	for name, topic := range response.Topics {
		topics[name] = map[int32]placed{}
		for index, one := range topic.Partitions {
			topics[name][index] = placed{one.Leader, one.Replicas, one.ISR}
		}
	}
	return topics, nil
}

func (p *program) topicConfigs(ctx context.Context, asked *task) (any, error) {
	response, err := p.admin.DescribeTopicConfigs(ctx, asked.Topic)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, one := range response[0].Configs {
		values[one.Key] = one.MaybeValue()
	}
	return values, response[0].Err
}

func (p *program) alterTopicConfigs(ctx context.Context, asked *task) (any, error) {
	changes := []kadm.AlterConfig{}
	for name, value := range asked.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	for _, name := range asked.Drop {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	done, err := p.admin.AlterTopicConfigs(ctx, changes, asked.Topic)
	if err != nil {
		return nil, err
	}
	return nil, done[0].Err
}

func (p *program) deleteRecords(ctx context.Context, asked *task) (any, error) {
	before := kadm.Offsets{}
	before.AddOffset(asked.Topic, asked.Partition, asked.Start, -1)
	done, err := p.admin.DeleteRecords(ctx, before)
	if err != nil {
		return nil, err
	}
	return nil, done.Error()
}

func (p *program) cluster(ctx context.Context, _ *task) (any, error) {
	response, err := p.admin.BrokerMetadata(ctx)
	if err != nil {
		return nil, err
	}
	ports := map[int32]int32{}
	for _, one := range response.Brokers {
		ports[one.NodeID] = one.Port
	}
	return map[string]any{"id": response.Cluster, "controller": response.Controller, "brokers": ports}, nil
}

func (p *program) logSizes(ctx context.Context, asked *task) (any, error) {
	response, err := p.admin.DescribeAllLogDirs(ctx, kadm.TopicsSet{asked.Topic: {0: {}, 1: {}}})
	if err != nil {
		return nil, err
	}
	sizes := [][]int64{}
	response.Each(func(dir kadm.DescribedLogDir) {
		for index, one := range dir.Topics[asked.Topic] {
			sizes = append(sizes, []int64{int64(dir.Broker), int64(index), one.Size})
		}
	})
	return sizes, nil
}

func (p *program) elect(ctx context.Context, asked *task) (any, error) {
	places := kadm.TopicsSet{asked.Topic: {asked.Partition: {}}}
	done, err := p.admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, places)
	if err != nil {
		return nil, err
	}
	return nil, done[asked.Topic][asked.Partition].Err
}

func (p *program) reassign(ctx context.Context, asked *task) (any, error) {
	request := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	topic := kmsg.NewAlterPartitionAssignmentsRequestTopic()
	place := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
	topic.Topic, place.Partition, place.Replicas = asked.Topic, asked.Partition, asked.Brokers
	topic.Partitions = append(topic.Partitions, place)
	request.Topics = append(request.Topics, topic)
	done, err := request.RequestWith(ctx, p.client)
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(done.ErrorCode); err != nil {
		return nil, err
	}
	return nil, kerr.ErrorForCode(done.Topics[0].Partitions[0].ErrorCode)
}
