"""Every error code of a Kafka response: its number, whether a retry may help, and its meaning.

The table is the protocol's own, as in kafka-clients 4.4.0. Names and numbers are part of the
protocol, so they never change, and a new error takes the next number. The package that answers a
request chooses its error.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The int16 in a response. Only `NONE` is falsy; a number not listed raises ValueError."""

    retriable: bool
    """Java's RetriableException: the same request may succeed later, perhaps with new metadata."""

    sentence: str
    """What happened, for a reader without Kafka's error names. Ends with a full stop."""

    # The defaults are for type checkers alone: they read `ErrorCode(6)` as a call of this method.
    # Self would say no more than the name does: an enum with members has no subclasses.
    def __new__(  # noqa: PYI034
        cls, code: int, retriable: bool = False, sentence: str = ""
    ) -> "ErrorCode":
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.sentence = sentence
        return member

    UNKNOWN_SERVER_ERROR = (-1, False, "The broker failed in a way that no other code describes.")
    NONE = (0, False, "All went well.")
    OFFSET_OUT_OF_RANGE = (1, False, "The log does not have this offset, or not yet.")
    CORRUPT_MESSAGE = (2, True, "A record batch is damaged or breaks the rules of its format.")
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, "This broker knows no such topic or partition.")
    INVALID_FETCH_SIZE = (4, False, "A fetch asked for an impossible number of bytes.")
    LEADER_NOT_AVAILABLE = (5, True, "The partition has no leader at the moment.")
    NOT_LEADER_OR_FOLLOWER = (6, True, "This broker does not lead it, or holds no replica.")
    REQUEST_TIMED_OUT = (7, True, "The work was not finished within the time allowed.")
    BROKER_NOT_AVAILABLE = (8, False, "The broker asked about is not alive.")
    REPLICA_NOT_AVAILABLE = (9, True, "The broker has no usable replica of the partition.")
    MESSAGE_TOO_LARGE = (10, False, "The batch is bigger than max.message.bytes allows.")
    STALE_CONTROLLER_EPOCH = (11, False, "The sender's controller epoch is out of date.")
    OFFSET_METADATA_TOO_LARGE = (12, False, "The metadata of a committed offset is too long.")
    NETWORK_EXCEPTION = (13, True, "The connection closed before the response arrived.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, True, "The coordinator is still loading its state.")
    COORDINATOR_NOT_AVAILABLE = (15, True, "There is no coordinator yet.")
    NOT_COORDINATOR = (16, True, "Another broker coordinates that group or transaction.")
    INVALID_TOPIC_EXCEPTION = (17, False, "The topic's name is illegal or reserved.")
    RECORD_LIST_TOO_LARGE = (18, False, "The batch would not fit into one segment.")
    NOT_ENOUGH_REPLICAS = (19, True, "The ISR is below min.insync.replicas; nothing was written.")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, True, "Written, but the ISR then proved too small.")
    INVALID_REQUIRED_ACKS = (21, False, "Valid values of acks are -1, 0 and 1.")
    ILLEGAL_GENERATION = (22, False, "The member names another generation than the group's.")
    INCONSISTENT_GROUP_PROTOCOL = (23, False, "The member shares no protocol with its group.")
    INVALID_GROUP_ID = (24, False, "The group's name is empty or otherwise unusable.")
    UNKNOWN_MEMBER_ID = (25, False, "The group has no member by that id.")
    INVALID_SESSION_TIMEOUT = (26, False, "The session timeout is outside the broker's limits.")
    REBALANCE_IN_PROGRESS = (27, False, "The group is rebalancing; join again.")
    INVALID_COMMIT_OFFSET_SIZE = (28, False, "The offset commit is too big to be stored.")
    TOPIC_AUTHORIZATION_FAILED = (29, False, "The client may not do this to the topic.")
    GROUP_AUTHORIZATION_FAILED = (30, False, "The client may not do this to the group.")
    CLUSTER_AUTHORIZATION_FAILED = (31, False, "The client may not do this to the cluster.")
    INVALID_TIMESTAMP = (32, False, "A record's timestamp is too far from the broker's clock.")
    UNSUPPORTED_SASL_MECHANISM = (33, False, "The broker does not offer this SASL mechanism.")
    ILLEGAL_SASL_STATE = (34, False, "The request came at the wrong step of the SASL handshake.")
    UNSUPPORTED_VERSION = (35, False, "The broker does not support this version of the request.")
    TOPIC_ALREADY_EXISTS = (36, False, "A topic of this name already exists.")
    INVALID_PARTITIONS = (37, False, "The topic cannot have that number of partitions.")
    INVALID_REPLICATION_FACTOR = (38, False, "A topic needs a replica, and a broker for each.")
    INVALID_REPLICA_ASSIGNMENT = (39, False, "The brokers chosen for the replicas are not valid.")
    INVALID_CONFIG = (40, False, "A setting has an unknown name or an impossible value.")
    NOT_CONTROLLER = (41, True, "This node is not the active controller.")
    INVALID_REQUEST = (42, False, "The request cannot be read, or contradicts itself.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, False, "The stored records are too old for this.")
    POLICY_VIOLATION = (44, False, "The operator's policy forbids what was asked.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, False, "A batch of the producer is missing before this.")
    DUPLICATE_SEQUENCE_NUMBER = (46, False, "The producer's batch is already in the log.")
    INVALID_PRODUCER_EPOCH = (47, False, "A newer epoch of this producer exists.")
    INVALID_TXN_STATE = (48, False, "The transaction's state does not allow this step.")
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        False,
        "The producer id is not the one of the transactional id.",
    )
    INVALID_TRANSACTION_TIMEOUT = (50, False, "The transaction asked for too much time.")
    CONCURRENT_TRANSACTIONS = (51, True, "Another operation on the transaction is in progress.")
    TRANSACTION_COORDINATOR_FENCED = (52, False, "A newer coordinator owns this transaction.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (
        53,
        False,
        "The client may not use this transactional id.",
    )
    SECURITY_DISABLED = (54, False, "Security is disabled on the broker.")
    OPERATION_NOT_ATTEMPTED = (55, False, "A failure elsewhere in the request stopped this.")
    KAFKA_STORAGE_ERROR = (56, True, "The disk under the partition's log failed.")
    LOG_DIR_NOT_FOUND = (57, False, "The broker keeps no such log directory.")
    SASL_AUTHENTICATION_FAILED = (58, False, "The client could not prove who it is.")
    UNKNOWN_PRODUCER_ID = (59, False, "The broker has no state of this producer id.")
    REASSIGNMENT_IN_PROGRESS = (
        60,
        False,
        "A reassignment of the partition is already in progress.",
    )
    DELEGATION_TOKEN_AUTH_DISABLED = (61, False, "The cluster does not use delegation tokens.")
    DELEGATION_TOKEN_NOT_FOUND = (62, False, "The cluster knows no such delegation token.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, False, "The token is not this client's to manage.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, False, "No tokens over such a connection.")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, False, "The client has no right to the token.")
    DELEGATION_TOKEN_EXPIRED = (66, False, "The delegation token has expired.")
    INVALID_PRINCIPAL_TYPE = (67, False, "Principals of that kind are unknown here.")
    NON_EMPTY_GROUP = (68, False, "The group still has members.")
    GROUP_ID_NOT_FOUND = (69, False, "There is no group of that name.")
    FETCH_SESSION_ID_NOT_FOUND = (70, True, "The broker has no fetch session with this id.")
    INVALID_FETCH_SESSION_EPOCH = (71, True, "The fetch is out of step with its session.")
    LISTENER_NOT_FOUND = (72, True, "The leader has no listener like the one in use here.")
    TOPIC_DELETION_DISABLED = (73, False, "This cluster does not let topics be deleted.")
    FENCED_LEADER_EPOCH = (74, True, "The request's leader epoch is older than the broker's.")
    UNKNOWN_LEADER_EPOCH = (75, True, "The request's leader epoch is newer than the broker's.")
    UNSUPPORTED_COMPRESSION_TYPE = (76, False, "This request version is too old for the codec.")
    STALE_BROKER_EPOCH = (77, False, "The request's broker epoch is stale.")
    OFFSET_NOT_AVAILABLE = (78, True, "The new leader's high watermark is still too low.")
    MEMBER_ID_REQUIRED = (79, False, "Join again with the member id that came with this.")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, True, "The preferred leader is down or out of sync.")
    GROUP_MAX_SIZE_REACHED = (81, False, "The group takes no more members.")
    FENCED_INSTANCE_ID = (82, False, "Another member has taken over this static instance id.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, True, "No replica is fit to be elected leader.")
    ELECTION_NOT_NEEDED = (84, True, "The partition already has the leader it should have.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, "No reassignment of the partition is in progress.")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, False, "The group still reads the topic; its offsets stay.")
    INVALID_RECORD = (87, False, "A record breaks a rule of its topic.")
    UNSTABLE_OFFSET_COMMIT = (88, True, "An open transaction may still change these offsets.")
    THROTTLING_QUOTA_EXCEEDED = (89, True, "The client has exceeded its quota.")
    PRODUCER_FENCED = (90, False, "A newer producer took over the transactional id.")
    RESOURCE_NOT_FOUND = (91, False, "The request names something that is not there.")
    DUPLICATE_RESOURCE = (92, False, "The request names one thing twice.")
    UNACCEPTABLE_CREDENTIAL = (93, False, "The new credential is too weak or otherwise unfit.")
    INCONSISTENT_VOTER_SET = (94, False, "The voter sets of the two nodes differ.")
    INVALID_UPDATE_VERSION = (95, False, "The change is based on an outdated state.")
    FEATURE_UPDATE_FAILED = (96, False, "The cluster could not change its feature levels.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, False, "A forwarded identity is unreadable.")
    SNAPSHOT_NOT_FOUND = (98, False, "The node holds no such snapshot.")
    POSITION_OUT_OF_RANGE = (99, False, "The read would start outside the snapshot.")
    UNKNOWN_TOPIC_ID = (100, True, "This broker knows no topic by that id.")
    DUPLICATE_BROKER_REGISTRATION = (101, False, "A live broker already has this id.")
    BROKER_ID_NOT_REGISTERED = (102, False, "The controller knows no broker by that id.")
    INCONSISTENT_TOPIC_ID = (103, True, "The log belongs to another topic of the same name.")
    INCONSISTENT_CLUSTER_ID = (104, False, "The request names another cluster id.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, False, "The coordinator knows no such transactional id.")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, True, "The session mixes topic ids with topic names.")
    INELIGIBLE_REPLICA = (107, False, "The ISR asked for has a broker that may not join it.")
    NEW_LEADER_ELECTED = (108, False, "The ISR change was made, and it moved the leadership.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, False, "The offset is in remote storage only.")
    FENCED_MEMBER_EPOCH = (110, False, "The group dropped the member, which must start over.")
    UNRELEASED_INSTANCE_ID = (111, False, "A present member holds this static instance id.")
    UNSUPPORTED_ASSIGNOR = (112, False, "The group cannot use the assignor asked for.")
    STALE_MEMBER_EPOCH = (113, False, "The member has yet to learn its current epoch.")
    MISMATCHED_ENDPOINT_TYPE = (114, False, "A broker got a controller's request, or vice versa.")
    UNSUPPORTED_ENDPOINT_TYPE = (115, False, "No node answers for that kind of endpoint.")
    UNKNOWN_CONTROLLER_ID = (116, False, "The cluster has no controller by that id.")
    UNKNOWN_SUBSCRIPTION_ID = (117, False, "The metrics answer a subscription not in force.")
    TELEMETRY_TOO_LARGE = (118, False, "The pushed metrics are too big to take in.")
    INVALID_REGISTRATION = (119, False, "The controller will not admit the broker as it is.")
    TRANSACTION_ABORTABLE = (120, False, "The transaction must abort; its producer may go on.")
    INVALID_RECORD_STATE = (121, False, "The record is not this member's to acknowledge.")
    SHARE_SESSION_NOT_FOUND = (122, True, "The broker has no share session with this id.")
    INVALID_SHARE_SESSION_EPOCH = (123, True, "The request is out of step with its session.")
    FENCED_STATE_EPOCH = (124, False, "The writer's state epoch is not the current one.")
    INVALID_VOTER_KEY = (125, False, "The request is addressed to another voter.")
    DUPLICATE_VOTER = (126, False, "The node has a vote already.")
    VOTER_NOT_FOUND = (127, False, "The node has no vote.")
    INVALID_REGULAR_EXPRESSION = (128, False, "The pattern of topic names cannot be parsed.")
    REBOOTSTRAP_REQUIRED = (129, False, "The client must go back to its bootstrap servers.")
    STREAMS_INVALID_TOPOLOGY = (130, False, "The Streams topology contradicts itself.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, False, "The topology cannot have that epoch.")
    STREAMS_TOPOLOGY_FENCED = (132, False, "A newer topology has replaced this one.")
    SHARE_SESSION_LIMIT_REACHED = (133, True, "The broker can hold no more share sessions.")
    GROUP_DELETION_FAILED = (134, False, "The group is still there; the message says why.")
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = (135, False, "The description was not stored.")
    CONTROLLER_ID_NOT_REGISTERED = (136, False, "No controller has signed up with that id.")
