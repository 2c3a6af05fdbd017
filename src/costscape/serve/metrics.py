"""What Prometheus reads of a service. Each service has a registry of its own."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


class Metrics:
    """Counters, histograms and gauges. It has no settings."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        at: dict[str, Any] = {"registry": self.registry, "namespace": "costscape"}
        self.requests = Counter("requests", "Requests.", ["path", "status"], **at)
        self.seconds = Histogram(
            "request_seconds", "From request to answer.", ["path"], buckets=SECONDS, **at
        )
        self.errors = Counter("errors", "Answers with status 400 or above.", ["status"], **at)
        self.rows = Counter("rows", "Decided rows.", ["model"], **at)
        self.flagged = Counter(
            "flagged_rows", "Rows far outside the range of the training rows.", ["model"], **at
        )
        self.batch = Histogram("batch_rows", "Rows decided in one call.", buckets=ROWS, **at)
        self.queue = Gauge("queue_rows", "Rows that wait or are being decided.", **at)
        self.reloads = Counter("reloads", "Loaded versions.", ["model", "result"], **at)
        self.info = Gauge(
            "model_info", "1 for the version that serves.", ["model", "version", "fit_date"], **at
        )
        self.logged = Counter("logged_rows", "Decisions kept in the store.", ["model"], **at)
        self.outcomes = Counter("outcomes", "Decisions that got an outcome.", ["model"], **at)
        self.drift = Gauge("drift_alerts", "Columns of x and y that drifted.", ["model"], **at)
        self.alerts = Gauge("monitor_alerts", "Alerts of the monitor.", ["model"], **at)
        self.flagged_share = Gauge(
            "flagged_share", "Share of flagged rows among the latest logged ones.", ["model"], **at
        )
        self.cost_ratio = Gauge(
            "cost_ratio", "Realised over expected cost of the latest outcomes.", ["model"], **at
        )
        self._serving: dict[str, tuple[str, str, str]] = {}

    def serve(self, served: Any) -> None:
        """Take over another version of a model."""
        labels = (served.name, served.version, served.describe()["fit_date"])
        if (old := self._serving.get(served.name)) is not None:
            self.info.remove(*old)
        self._serving[served.name] = labels
        self.info.labels(*labels).set(1)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests.labels(path, str(status)).inc()
        self.seconds.labels(path).observe(seconds)
        if status >= 400:
            self.errors.labels(str(status)).inc()

    def text(self) -> bytes:
        """All of them in the text format of Prometheus."""
        return generate_latest(self.registry)
