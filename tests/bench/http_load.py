"""An open load against llama.cpp's server: what `baton bench --rate` is for Baton.

Cheap on purpose, since it runs beside the server: an answer's events are counted and timed, not parsed.
"""

import asyncio
import json
import time

import figures

EVENT = b"data: "


class Record:
    """What the client saw of one request; times are of one clock."""

    def __init__(self, due):
        self.start = due  # When the schedule wanted it: a late start counts as waiting.
        self.events = []  # When each token came.
        self.ok = False

    def result(self):
        ttft = (self.events[0] - self.start) * 1e3 if self.events else None
        tpot = None
        if len(self.events) > 1:
            tpot = (self.events[-1] - self.events[0]) * 1e3 / (len(self.events) - 1)
        return {"ok": self.ok, "ttft_ms": ttft, "tpot_ms": tpot}

    def gaps_ms(self):
        return [(b - a) * 1e3 for a, b in zip(self.events, self.events[1:])]


def http_request(port, prompt, output_tokens):
    body = json.dumps(
        {
            "prompt": prompt,
            "n_predict": output_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "cache_prompt": False,
        }
    ).encode()
    head = "POST /completion HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n" % port
    return (head + "Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)).encode() + body


async def read_answer(reader, record, tokens):
    """An event for every token and one that ends the answer; the last one's token is counted with the end."""
    status = await reader.readline()
    if b" 200 " not in status:
        return
    while True:
        line = await reader.readline()
        if not line:
            break
        if not line.startswith(EVENT):
            continue
        now = time.monotonic()
        if b'"stop":true' in line:
            record.ok = True
            break
        if b'"stop":false' in line and len(record.events) < tokens:
            record.events.append(now)


async def one_request(port, record, prompt, output_tokens, timeout):
    writer = None
    try:
        async with asyncio.timeout(timeout - (time.monotonic() - record.start)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
            writer.write(http_request(port, prompt, output_tokens))
            await read_answer(reader, record, output_tokens)
    except (OSError, TimeoutError, ValueError):
        record.ok = False
    finally:
        if writer is not None:
            writer.close()


async def _run(port, requests, times, timeout):
    records, tasks = [], []
    begin = time.monotonic()
    for (prompt, output_tokens), at in zip(requests, times):
        due = begin + at
        await asyncio.sleep(max(0, due - time.monotonic()))
        record = Record(due)
        records.append(record)
        tasks.append(asyncio.create_task(one_request(port, record, prompt, output_tokens, timeout)))
    await asyncio.gather(*tasks)
    return records


def run(port, requests, rate, seed, timeout):
    """`requests` are (token ids, output tokens). One record each, in the order in which they were sent."""
    times = figures.arrivals(rate, seed, len(requests))
    return asyncio.run(_run(port, requests, times, timeout))
