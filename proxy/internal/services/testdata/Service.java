// The service for the JDK's HttpServer. What it obeys and writes: see doc.go.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

public class Service {
    private static final Path JOURNAL = Path.of(System.getenv("JOURNAL"));

    public static void main(String[] arguments) throws IOException {
        String[] listen = System.getenv("LISTEN").split(":");
        HttpServer server = HttpServer.create(new InetSocketAddress(listen[0], Integer.parseInt(listen[1])), 0);
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(System.getenv("WORKERS"))));
        server.createContext("/", Service::serve);
        server.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(1)));
    }

    private static void serve(HttpExchange exchange) throws IOException {
        try (exchange) {
            if (!exchange.getRequestMethod().equals("POST")) {
                answer(exchange, "ready".getBytes(StandardCharsets.US_ASCII));
                return;
            }
            byte[] body = exchange.getRequestBody().readAllBytes();
            boolean first = header(exchange, "Delivery-Attempt", "").equals("1");
            String command = header(exchange, "RabbitMQ-Header-do", "");
            note("received", exchange, body);
            if (first && command.equals("die-before")) {
                die();
            }
            Thread.sleep(Integer.parseInt(header(exchange, "RabbitMQ-Header-sleep", "0")));
            note("worked", exchange, body);
            if (first && command.equals("die-after")) {
                die();
            }
            answer(exchange, "x".repeat(Integer.parseInt(header(exchange, "RabbitMQ-Header-answer", "2")))
                .getBytes(StandardCharsets.US_ASCII));
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private static void answer(HttpExchange exchange, byte[] body) throws IOException {
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
    }

    private static String header(HttpExchange exchange, String name, String fallback) {
        String value = exchange.getRequestHeaders().getFirst(name);
        return value == null ? fallback : value;
    }

    private static synchronized void note(String event, HttpExchange exchange, byte[] body) throws IOException {
        StringBuilder line = new StringBuilder("{\"event\":" + quote(event));
        line.append(",\"key\":").append(quote(header(exchange, "Idempotency-Key", "")));
        line.append(",\"attempt\":").append(quote(header(exchange, "Delivery-Attempt", "")));
        line.append(",\"unknown\":").append(header(exchange, "Delivery-Outcome-Unknown", "").equals("true"));
        line.append(",\"length\":").append(body.length);
        line.append(",\"sha256\":").append(quote(sha256(body)));
        line.append(",\"pid\":").append(ProcessHandle.current().pid());
        if (event.equals("received")) {
            line.append(",\"headers\":{");
            String separator = "";
            for (Map.Entry<String, List<String>> header : exchange.getRequestHeaders().entrySet()) {
                line.append(separator).append(quote(header.getKey().toLowerCase())).append(':')
                    .append(quote(header.getValue().get(0)));
                separator = ",";
            }
            line.append('}');
        }
        Files.write(JOURNAL, line.append("}\n").toString().getBytes(StandardCharsets.UTF_8),
            StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }

    private static String quote(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
    }

    private static String sha256(byte[] body) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
        } catch (java.security.NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    private static void die() throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-KILL", Long.toString(ProcessHandle.current().pid())).start();
        Thread.sleep(60_000);
    }
}
