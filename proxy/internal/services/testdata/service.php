<?php
// The service for php -S and php-fpm. What it obeys and writes: see doc.go.
declare(strict_types=1);

if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    exit('ready');
}

$headers = [];
foreach ($_SERVER as $name => $value) {
    if (str_starts_with($name, 'HTTP_')) {
        $headers[strtolower(strtr(substr($name, 5), '_', '-'))] = (string) $value;
    }
}
$body = file_get_contents('php://input');
$attempt = $headers['delivery-attempt'] ?? '';
$do = $headers['rabbitmq-header-do'] ?? '';

function note(string $event): void
{
    global $headers, $body, $attempt;
    $line = [
        'event' => $event,
        'key' => $headers['idempotency-key'] ?? '',
        'attempt' => $attempt,
        'unknown' => ($headers['delivery-outcome-unknown'] ?? '') === 'true',
        'length' => strlen($body),
        'sha256' => hash('sha256', $body),
        'pid' => getmypid(),
    ];
    if ($event === 'received') {
        $line['headers'] = $headers;
    }
    file_put_contents(getenv('JOURNAL'), json_encode($line, JSON_THROW_ON_ERROR) . "\n", FILE_APPEND | LOCK_EX);
}

function dieNow(): void
{
    posix_kill(getmypid(), SIGKILL_NUMBER);
    sleep(60);
}
const SIGKILL_NUMBER = 9; // pcntl, which names it, is not in php-fpm

note('received');
if ($do === 'die-before' && $attempt === '1') {
    dieNow();
}
usleep(1000 * (int) ($headers['rabbitmq-header-sleep'] ?? 0));
note('worked');
if ($do === 'die-after' && $attempt === '1') {
    dieNow();
}
echo str_repeat('x', (int) ($headers['rabbitmq-header-answer'] ?? 2));
