package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}

func (p *program) produce(ctx context.Context, asked *task) (any, error) {
	options := []kgo.Opt{
		p.seeds,
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[asked.Compression]),
		kgo.RequiredAcks(acks[asked.Acks]),
		kgo.ProducerLinger(20 * time.Millisecond),
	}
	if !asked.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(asked.Records))
	for i, one := range asked.Records {
		records[i] = &kgo.Record{
			Topic: asked.Topic, Partition: asked.Partition, Key: one.Key, Value: one.Value,
		}
		if one.Timestamp != nil {
			records[i].Timestamp = time.UnixMilli(*one.Timestamp)
		}
		for _, each := range one.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: each.Name, Value: each.Value})
		}
	}
	offsets := []int64{}
	for _, done := range client.ProduceSync(ctx, records...) {
		if done.Err != nil {
			return nil, done.Err
		}
		offsets = append(offsets, done.Record.Offset)
	}
	return offsets, nil
}

func (p *program) consume(ctx context.Context, asked *task) (any, error) {
	at := kgo.NewOffset().At(asked.Start)
	client, err := kgo.NewClient(p.seeds, kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{asked.Topic: {asked.Partition: at}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	got := []record{}
	for len(got) < asked.Count {
		fetches := client.PollRecords(ctx, asked.Count-len(got))
		if err := fetches.Err0(); err != nil {
			return nil, err
		}
		fetches.EachError(func(_ string, _ int32, one error) { err = one })
		if err != nil {
			return nil, err
		}
		fetches.EachRecord(func(one *kgo.Record) { got = append(got, shown(one)) })
	}
	return got, nil
}

func shown(one *kgo.Record) record {
	timestamp := one.Timestamp.UnixMilli()
	headers := []header{}
	for _, each := range one.Headers {
		headers = append(headers, header{each.Key, each.Value})
	}
	return record{one.Offset, &timestamp, one.Key, one.Value, headers}
}

func (p *program) offsetAt(ctx context.Context, asked *task) (any, error) {
	listed, err := p.admin.ListOffsetsAfterMilli(ctx, asked.Timestamp, asked.Topic)
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(asked.Topic, asked.Partition)
	if found.Err != nil {
		return nil, found.Err
	}
	if found.Timestamp < 0 { // kadm gives the end where there is none
		return nil, nil
	}
	return found.Offset, nil
}

func (p *program) offsets(ctx context.Context, asked *task) (any, error) {
	starts, err := p.admin.ListStartOffsets(ctx, asked.Topic)
	if err != nil {
		return nil, err
	}
	ends, err := p.admin.ListEndOffsets(ctx, asked.Topic)
	if err != nil {
		return nil, err
	}
	start, isThere := starts.Lookup(asked.Topic, asked.Partition)
	end, _ := ends.Lookup(asked.Topic, asked.Partition)
	if !isThere {
		return nil, fmt.Errorf("no offsets of %s-%d", asked.Topic, asked.Partition)
	}
	return []int64{start.Offset, end.Offset}, nil
}
