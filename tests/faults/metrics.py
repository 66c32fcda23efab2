"""Which metrics of docs/metrics.md have moved on some process."""

import re
import threading
import urllib.request


class Moved:
    """Collects from processes as often as it is asked to. Thread-safe."""

    def __init__(self, page):
        with open(page, encoding="utf-8") as file:
            self._declared = set(re.findall(r"^\| `(baton_\w+)`", file.read(), re.MULTILINE))
        self._moved = set()
        self._lock = threading.Lock()

    def look(self, process):
        """A counter or a gauge above 0, or a histogram with a value."""
        try:
            with urllib.request.urlopen("http://%s/metrics" % process.metrics, timeout=5) as reply:
                text = reply.read().decode()
        except OSError:
            return  # it is stopped or gone
        with self._lock:
            for name, value in re.findall(r"^(baton_\w+?)(?:_count)?(?:\{.*\})? (\S+)$", text, re.MULTILINE):
                if name in self._declared and float(value) > 0:
                    self._moved.add(name)

    def missing(self):
        return sorted(self._declared - self._moved)
