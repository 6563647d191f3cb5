import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;

/** What Kafka itself says about settings: one line a question on stdin, one or more lines back. */
public class AskKafka {
    static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }

    static String shown(ConfigDef.ConfigKey key) {
        if (key.defaultValue == ConfigDef.NO_DEFAULT_VALUE) return "required";
        if (key.defaultValue == null) return "null";
        return ConfigDef.convertToString(key.defaultValue, key.type);
    }

    static void table(String scope, ConfigDef known, Map<String, String> modes) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(known.configKeys()).values()) {
            String allowed = key.validator == null ? "" : key.validator.toString();
            String importance = key.internalConfig ? "internal" : key.importance.toString();
            System.out.println(String.join("\t", "setting", scope, key.name, key.type.toString(),
                shown(key), allowed, modes.getOrDefault(key.name, "read-only"), importance));
        }
    }

    @SuppressWarnings("unchecked")
    static void tables() throws Exception {
        var broker = Class.forName("kafka.server.KafkaConfig").getMethod("configDef").invoke(null);
        var modes = Class.forName("org.apache.kafka.server.config.DynamicBrokerConfig")
            .getMethod("dynamicConfigUpdateModes").invoke(null);
        table("broker", (ConfigDef) broker, (Map<String, String>) modes);
        var log = Class.forName("org.apache.kafka.storage.internals.log.LogConfig");
        table("topic", (ConfigDef) log.getMethod("configDefCopy").invoke(null), Map.of());
        var synonyms = Class.forName("org.apache.kafka.server.config.ServerTopicConfigSynonyms")
            .getField("ALL_TOPIC_CONFIG_SYNONYMS").get(null);
        for (var entry : ((Map<String, List<?>>) synonyms).entrySet()) {
            var line = new StringBuilder("synonyms\t" + entry.getKey());
            for (Object one : entry.getValue())
                line.append("\t").append(one.getClass().getMethod("name").invoke(one));
            System.out.println(line);
        }
    }

    static String value(String kind, String given) {
        ConfigDef.Type type = ConfigDef.Type.valueOf(kind);
        try {
            return "value\t" + hex(ConfigDef.convertToString(
                ConfigDef.parseType("x", given, type), type));
        } catch (Exception refused) {
            return "value\trefused";
        }
    }

    static String properties(String given) {
        var read = new Properties();
        try {
            read.load(new ByteArrayInputStream(given.getBytes(StandardCharsets.ISO_8859_1)));
        } catch (Exception refused) {
            return "properties\trefused";
        }
        var line = new StringBuilder("properties");
        for (var entry : new TreeMap<>(read).entrySet())
            line.append("\t").append(hex((String) entry.getKey()))
                .append("=").append(hex((String) entry.getValue()));
        return line.toString();
    }

    public static void main(String[] arguments) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] asked = line.split("\t", -1);
            switch (asked[0]) {
                case "tables" -> tables();
                case "value" -> System.out.println(value(asked[1], text(asked[2])));
                case "properties" -> System.out.println(properties(text(asked[1])));
                default -> throw new IllegalArgumentException(line);
            }
        }
    }
}
