"""A service with no idea of RabbitMQ: it charges an order for each POST and keeps no keys."""

import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Orders(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200 if self.path == "/healthz" else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if b"poison" in body:
            print("refused", self.headers["Idempotency-Key"], flush=True)
            self.answer(422)
            return
        print("charged", self.headers["Idempotency-Key"], body.decode(errors="replace"), flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass  # only charges are shown, not each health check


class Server(ThreadingHTTPServer):
    daemon_threads = False  # on SIGTERM, end the requests that have begun


server = Server(("", 8080), Orders)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
server.server_close()
