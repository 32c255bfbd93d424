// The service for Node: a cluster of workers. What it obeys and writes: see doc.go.
'use strict';

const cluster = require('node:cluster');
const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');

if (cluster.isPrimary) {
  const workers = Number(process.env.WORKERS);
  for (let i = 0; i < workers; i++) cluster.fork();
  cluster.on('exit', (worker) => {
    if (!worker.exitedAfterDisconnect) cluster.fork();
  });
  process.on('SIGHUP', () => {
    let starting = workers;
    for (const old of Object.values(cluster.workers)) {
      cluster.fork().once('listening', () => {
        old.disconnect(); // it finishes what it has; its kept connections end by their limit
        if (--starting === 0) console.log('new workers are at work');
      });
    }
  });
} else {
  const server = http.createServer(serve);
  server.keepAliveTimeout = Number(process.env.KEEP_ALIVE_MS);
  server.keepAliveTimeoutBuffer = 0; // Node 24 adds a second without this
  const [host, port] = process.env.LISTEN.split(':');
  server.listen(Number(port), host);
}

function serve(request, response) {
  if (request.method !== 'POST') {
    response.end('ready');
    return;
  }
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => work(request, Buffer.concat(chunks), response));
}

function work(request, body, response) {
  const first = request.headers['delivery-attempt'] === '1';
  const command = request.headers['rabbitmq-header-do'];
  note('received', request, body);
  if (first && command === 'die-before') die();
  setTimeout(() => {
    note('worked', request, body);
    if (first && command === 'die-after') die();
    response.end('x'.repeat(Number(request.headers['rabbitmq-header-answer'] ?? 2)));
  }, Number(request.headers['rabbitmq-header-sleep'] ?? 0));
}

function note(event, request, body) {
  const line = {
    event,
    key: request.headers['idempotency-key'],
    attempt: request.headers['delivery-attempt'],
    unknown: request.headers['delivery-outcome-unknown'] === 'true',
    length: body.length,
    sha256: crypto.createHash('sha256').update(body).digest('hex'),
    pid: process.pid,
  };
  if (event === 'received') line.headers = request.headers;
  fs.appendFileSync(process.env.JOURNAL, JSON.stringify(line) + '\n');
}

function die() {
  process.kill(process.pid, 'SIGKILL');
  for (;;); // no other callback runs before the signal
}
