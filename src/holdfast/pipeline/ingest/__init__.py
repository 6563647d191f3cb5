"""Topics into a Delta table, exactly once in effect.

Spark's Kafka connector reads at least once, in batches whose offsets are written down before they
are read. Delta writes a batch at most once: each commit carries (query, batch number), and a commit
that exists already is left out. Together: every offset is in the table once, however often the
driver dies. Bad values go to a second table in the same way.
"""

from holdfast.pipeline.ingest.options import Ingest
from holdfast.pipeline.ingest.run import Summary, ingest
from holdfast.pipeline.ingest.tables import compact, history
from holdfast.pipeline.ingest.topics import Topics, cluster_of

__all__ = ["Ingest", "Summary", "Topics", "cluster_of", "compact", "history", "ingest"]
