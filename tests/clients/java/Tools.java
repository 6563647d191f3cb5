import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools in one JVM, which is started once instead of for each call.
 *
 * <p>A JSON task a line: {"tool": class, "args": [...], "input": text} runs a tool to its end,
 * with "background": true it goes on; {"look": n} returns what task n has written, {"stop": n} ends
 * it as Ctrl-C would. Each is answered by {"task": n, "out": ..., "err": ..., "code": ...}.
 */
public class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final InheritableThreadLocal<Task> CURRENT = new InheritableThreadLocal<>();
    private static final List<Task> TASKS = new ArrayList<>();

    /** What Exit.exit throws, so that only the tool ends. */
    private static class Exited extends Error {
        Exited() {
            super("the tool has ended", null, false, false);
        }
    }

    private static class Task {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new CopyOnWriteArrayList<>();
        volatile Integer code = null;
        Thread thread;

        void exit(int status) {
            if (code == null) code = status; // A tool that catches our error may exit once more.
            throw new Exited();
        }
    }

    /** The tools afresh for each call: some count in static fields. */
    private static class Fresh extends URLClassLoader {
        Fresh(URL[] jars) {
            super(jars, Tools.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            boolean isTool = name.startsWith("org.apache.kafka.tools.");
            if (!isTool || name.startsWith("org.apache.kafka.tools.api.")) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded != null ? loaded : findClass(name);
            }
        }
    }

    /** Writes to whichever task the thread belongs to. */
    private static PrintStream dispatching(Function<Task, OutputStream> to) {
        OutputStream stream = new OutputStream() {
            @Override
            public void write(int one) {
                write(new byte[] {(byte) one}, 0, 1);
            }

            @Override
            public void write(byte[] data, int from, int count) {
                Task task = CURRENT.get();
                if (task == null) return;
                try {
                    to.apply(task).write(data, from, count);
                } catch (java.io.IOException error) {
                    throw new IllegalStateException(error);
                }
            }
        };
        return new PrintStream(stream, true, StandardCharsets.UTF_8);
    }

    private static Task start(JsonNode asked) throws Exception {
        Task task = new Task();
        TASKS.add(task);
        List<String> words = new ArrayList<>();
        asked.get("args").forEach(word -> words.add(word.asText()));
        String input = asked.path("input").asText("");
        System.setIn(new ByteArrayInputStream(input.getBytes(StandardCharsets.UTF_8)));
        String name = asked.get("tool").asText();
        URL jar = Class.forName("org.apache.kafka.tools.TopicCommand")
            .getProtectionDomain().getCodeSource().getLocation();
        Fresh fresh = new Fresh(new URL[] {jar});
        task.thread = new Thread(() -> run(task, fresh, name, words.toArray(new String[0])));
        task.thread.setContextClassLoader(fresh);
        task.thread.setDaemon(true);
        task.thread.start();
        return task;
    }

    private static void run(Task task, ClassLoader loader, String name, String[] words) {
        CURRENT.set(task);
        try {
            Class<?> tool = Class.forName(name, true, loader);
            tool.getMethod("main", String[].class).invoke(null, (Object) words);
            if (task.code == null) task.code = 0;
        } catch (java.lang.reflect.InvocationTargetException error) {
            if (!(error.getCause() instanceof Exited)) error.getCause().printStackTrace();
            if (task.code == null) task.code = 1;
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            task.code = 1;
        }
    }

    private static ObjectNode shown(Task task) {
        ObjectNode answer = JSON.createObjectNode();
        answer.put("task", TASKS.indexOf(task));
        answer.put("out", task.out.toString(StandardCharsets.UTF_8));
        answer.put("err", task.err.toString(StandardCharsets.UTF_8));
        answer.put("code", task.code);
        return answer;
    }

    private static ObjectNode answer(JsonNode asked) throws Exception {
        if (asked.has("look")) return shown(TASKS.get(asked.get("look").asInt()));
        if (asked.has("stop")) {
            Task task = TASKS.get(asked.get("stop").asInt());
            for (Runnable hook : task.hooks) {
                Thread stopping = new Thread(hook);
                stopping.setDaemon(true);
                stopping.start();
            }
            task.thread.join(60_000);
            return shown(task);
        }
        Task task = start(asked);
        if (!asked.path("background").asBoolean()) task.thread.join(60_000);
        return shown(task);
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.setOut(dispatching(task -> task.out));
        System.setErr(dispatching(task -> task.err));
        Exit.setExitProcedure((status, message) -> CURRENT.get().exit(status));
        Exit.setHaltProcedure((status, message) -> CURRENT.get().exit(status));
        Exit.setShutdownHookAdder((name, hook) -> CURRENT.get().hooks.add(hook));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
        Runtime.getRuntime().halt(0);
    }
}
