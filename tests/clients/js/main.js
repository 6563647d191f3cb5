// kafkajs, asked through stdin: a JSON task a line in, a JSON answer a line out (see go/main.go).
'use strict'

const readline = require('readline')
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
const lz4 = require('lz4js')
const xxh32 = require('lz4js/xxh32')
const { ZstdCodec } = require('zstd-codec')

const TOPIC_ALREADY_EXISTS = 36
const TOPIC = 2 // the kind of resource whose settings are meant

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
// Kafka refuses frames of linked blocks. lz4js makes one block of up to 4 MB and does not say that
// it stands alone: say so, and compute the checksum of the descriptor again.
const standingAlone = frame => {
  frame[4] |= 0x20
  frame[6] = xxh32.hash(0, frame, 4, 2) >> 8
  return frame
}
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => standingAlone(Buffer.from(lz4.compress(encoder.buffer))),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
const zstd = new Promise(resolve => ZstdCodec.run(module => resolve(new module.Simple())))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from((await zstd).compress(encoder.buffer)),
  decompress: async buffer => Buffer.from((await zstd).decompress(buffer)),
})
const TYPES = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const kafka = new Kafka({
  brokers: process.argv.slice(2),
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 50, retries: 5 },
})
// A consumer ends when its last fetch does; a new cluster's coordinators are not ready immediately.
const READING = {
  heartbeatInterval: 200,
  maxWaitTimeInMs: 100,
  retry: { initialRetryTime: 50, retries: 10 },
}
const admin = kafka.admin()
const members = []
let groups = 0

const bytes = text => (text === null ? null : Buffer.from(text, 'base64'))
const text = buffer => (buffer === null ? null : buffer.toString('base64'))

const sent = (partition, { key, value, headers, timestamp }) => {
  const named = {}
  for (const one of headers) {
    named[one.name] = (named[one.name] || []).concat([bytes(one.value)])
  }
  const message = { partition, key: bytes(key), value: bytes(value), headers: named }
  return timestamp === null ? message : { ...message, timestamp: String(timestamp) }
}

const shown = ({ offset, timestamp, key, value, headers }) => ({
  offset: Number(offset),
  timestamp: Number(timestamp),
  key: text(key),
  value: text(value),
  headers: Object.entries(headers).flatMap(([name, values]) =>
    [values].flat().map(one => ({ name, value: text(one) }))
  ),
})

const resource = name => [{ type: TOPIC, name }]

const DO = {
  async produce({ topic, partition, records, compression, acks, idempotent }) {
    const producer = kafka.producer({ idempotent, maxInFlightRequests: 1 })
    await producer.connect()
    try {
      const messages = records.map(one => sent(partition, one))
      const [response] = await producer.send({ topic, acks, messages, compression: TYPES[compression] })
      return acks === 0 ? null : records.map((_, place) => Number(response.baseOffset) + place)
    } finally {
      await producer.disconnect()
    }
  },

  // kafkajs reads in groups only: a group of its own, which seeks.
  async consume({ topic, partition, start, count }) {
    const groupId = `reader-${process.pid}-${groups++}`
    const consumer = kafka.consumer({ groupId, ...READING })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    const got = []
    await new Promise((resolve, reject) => {
      consumer.on('consumer.crash', ({ payload }) => reject(payload.error))
      const eachMessage = async ({ partition: from, message }) => {
        const isWanted = from === partition && got.length < count
        if (isWanted && Number(message.offset) === start + got.length) got.push(shown(message))
        if (got.length === count) resolve()
      }
      consumer.run({ autoCommit: false, eachMessage }).catch(reject)
      consumer.seek({ topic, partition, offset: String(start) })
    })
    await consumer.disconnect()
    return got
  },

  async offset_at({ topic, partition, timestamp }) {
    const [found, end] = await Promise.all([
      admin.fetchTopicOffsetsByTimestamp(topic, timestamp),
      admin.fetchTopicOffsets(topic),
    ])
    const at = list => Number(list.find(one => one.partition === partition).offset)
    return at(found) === at(end) ? null : at(found) // kafkajs gives the end where there is none
  },

  async offsets({ topic, partition }) {
    const { low, high } = (await admin.fetchTopicOffsets(topic)).find(
      one => one.partition === partition
    )
    return [Number(low), Number(high)]
  },

  async create_topic({ topic, count, replicas, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const created = await admin.createTopics({
      topics: [{ topic, numPartitions: count, replicationFactor: replicas, configEntries }],
    })
    if (!created) throw Object.assign(new Error('it is there'), { code: TOPIC_ALREADY_EXISTS })
  },

  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),
  create_partitions: ({ topic, count }) =>
    admin.createPartitions({ topicPartitions: [{ topic, count }] }),

  async topics() {
    const { topics } = await admin.fetchTopicMetadata()
    const placed = one => ({ leader: one.leader, replicas: one.replicas, isr: one.isr })
    return Object.fromEntries(
      topics.map(({ name, partitions }) => [
        name,
        Object.fromEntries(partitions.map(one => [one.partitionId, placed(one)])),
      ])
    )
  },

  async topic_configs({ topic }) {
    const response = await admin.describeConfigs({ resources: resource(topic) })
    const entries = response.resources[0].configEntries
    return Object.fromEntries(entries.map(one => [one.configName, one.configValue]))
  },

  alter_topic_configs({ topic, configs }) {
    const configEntries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    return admin.alterConfigs({ resources: [{ ...resource(topic)[0], configEntries }] })
  },

  async delete_records({ topic, partition, start }) {
    await admin.fetchTopicOffsets(topic) // or it knows no leader
    await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(start) }] })
  },

  async cluster() {
    const { brokers, controller, clusterId } = await admin.describeCluster()
    const ports = Object.fromEntries(brokers.map(one => [one.nodeId, one.port]))
    return { id: clusterId, controller, brokers: ports }
  },

  reassign: ({ topic, partition, brokers }) =>
    admin.alterPartitionReassignments({
      topics: [{ topic, partitionAssignment: [{ partition, replicas: brokers }] }],
    }),

  async join({ group, topic }) {
    const consumer = kafka.consumer({ groupId: group, ...READING })
    const member = { consumer, owned: [], values: [], error: null }
    consumer.on('consumer.group_join', ({ payload }) => {
      member.owned = payload.memberAssignment[topic] || []
    })
    consumer.on('consumer.rebalancing', () => (member.owned = []))
    consumer.on('consumer.crash', ({ payload }) => (member.error = payload.error))
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    const eachMessage = async ({ message }) => member.values.push(text(message.value))
    await consumer.run({ eachMessage })
    return members.push(member) - 1
  },

  async member({ member }) {
    if (members[member].error) throw members[member].error
    return { owned: members[member].owned, values: members[member].values }
  },

  leave: ({ member }) => members[member].consumer.disconnect(),
  groups: async () => (await admin.listGroups()).groups.map(one => one.groupId),

  async group({ group }) {
    const [response] = (await admin.describeGroups([group])).groups
    return { state: response.state.toLowerCase(), members: response.members.length }
  },

  async committed({ group, topic }) {
    const [response] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    return Object.fromEntries(response.partitions.map(one => [one.partition, Number(one.offset)]))
  },

  delete_group: ({ group }) => admin.deleteGroups([group]),
}

// The broker's error is in different places for different calls.
const codeOf = error => {
  if (!error) return 0
  if (typeof error.code === 'number' && error.code > 0) return error.code
  const [first] = error.errors || error.partitions || error.groups || []
  const inner = first && (first.error || first)
  return codeOf(inner) || codeOf(error.cause)
}

const answer = async line => {
  try {
    const task = JSON.parse(line)
    const result = await DO[task.do](task)
    return { ok: result === undefined ? null : result }
  } catch (error) {
    return { error: codeOf(error), message: String(error && error.stack) }
  }
}

const main = async () => {
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    process.stdout.write(JSON.stringify(await answer(line)) + '\n')
  }
  process.exit(0)
}

main()
