// franz-go, asked through stdin: a JSON task a line in, a JSON answer a line out.
//
// {"do": "consume", "topic": "t", ...} is answered by {"ok": ...} or by {"error": 3, "message": ...},
// where the number is Kafka's error code, or 0 if the failure is no broker's. Bytes are base64.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type header struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

type record struct {
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

type task struct {
	Do          string            `json:"do"`
	Topic       string            `json:"topic"`
	Partition   int32             `json:"partition"`
	Records     []record          `json:"records"`
	Compression string            `json:"compression"`
	Acks        int               `json:"acks"`
	Idempotent  bool              `json:"idempotent"`
	Start       int64             `json:"start"`
	Count       int               `json:"count"`
	Timestamp   int64             `json:"timestamp"`
	Replicas    int16             `json:"replicas"`
	Configs     map[string]string `json:"configs"`
	Drop        []string          `json:"drop"`
	Brokers     []int32           `json:"brokers"`
	Group       string            `json:"group"`
	Member      int               `json:"member"`
}

type program struct {
	seeds   kgo.Opt
	client  *kgo.Client
	admin   *kadm.Client
	members []*member
}

var do = map[string]func(*program, context.Context, *task) (any, error){
	"produce":             (*program).produce,
	"consume":             (*program).consume,
	"offset_at":           (*program).offsetAt,
	"offsets":             (*program).offsets,
	"create_topic":        (*program).createTopic,
	"delete_topic":        (*program).deleteTopic,
	"create_partitions":   (*program).createPartitions,
	"topics":              (*program).topics,
	"topic_configs":       (*program).topicConfigs,
	"alter_topic_configs": (*program).alterTopicConfigs,
	"delete_records":      (*program).deleteRecords,
	"cluster":             (*program).cluster,
	"log_sizes":           (*program).logSizes,
	"elect":               (*program).elect,
	"reassign":            (*program).reassign,
	"join":                (*program).join,
	"member":              (*program).memberState,
	"leave":               (*program).leave,
	"groups":              (*program).groups,
	"group":               (*program).group,
	"committed":           (*program).committed,
	"delete_group":        (*program).deleteGroup,
}

func main() {
	seeds := kgo.SeedBrokers(os.Args[1:]...)
	client, err := kgo.NewClient(seeds, kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		panic(err)
	}
	program := &program{seeds: seeds, client: client, admin: kadm.NewClient(client)}
	lines := bufio.NewReader(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		answers.Encode(program.answer(line))
	}
}

func (p *program) answer(line []byte) any {
	var asked task
	if err := json.Unmarshal(line, &asked); err != nil {
		return refusal(err)
	}
	work := do[asked.Do]
	if work == nil {
		return refusal(fmt.Errorf("no such task: %s", asked.Do))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	result, err := work(p, ctx, &asked)
	if err != nil {
		return refusal(err)
	}
	return map[string]any{"ok": result}
}

func refusal(err error) any {
	var kafka *kerr.Error
	if errors.As(err, &kafka) {
		return map[string]any{"error": kafka.Code, "message": kafka.Message}
	}
	return map[string]any{"error": 0, "message": err.Error()}
}
