"""The service for gunicorn. What it obeys and writes: see doc.go."""

import hashlib
import json
import os
import signal
import time


def app(environ, start_response):
    if environ["REQUEST_METHOD"] != "POST":
        start_response("200 OK", [("Content-Length", "5")])
        return [b"ready"]
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    attempt = headers.get("delivery-attempt", "")
    do = headers.get("rabbitmq-header-do", "")

    note("received", headers, attempt, body)
    if do == "die-before" and attempt == "1":
        die()
    time.sleep(int(headers.get("rabbitmq-header-sleep", 0)) / 1000)
    note("worked", headers, attempt, body)
    if do == "die-after" and attempt == "1":
        die()
    answer = b"x" * int(headers.get("rabbitmq-header-answer", 2))
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


def note(event, headers, attempt, body):
    line = {
        "event": event,
        "key": headers.get("idempotency-key", ""),
        "attempt": attempt,
        "unknown": headers.get("delivery-outcome-unknown") == "true",
        "length": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "pid": os.getpid(),
    }
    if event == "received":
        line["headers"] = headers
    journal = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(journal, json.dumps(line).encode() + b"\n")
    finally:
        os.close(journal)


def die():
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
