import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;

/** Reads lines "skip | pattern | events" in the language of tests/cep/pattern_texts.py; writes what Flink's NFA gives. */
public class CepDriver {
    static class Letters extends IterativeCondition<String> {
        final String text;

        Letters(String text) {
            this.text = text;
        }

        @Override
        public boolean filter(String event, Context<String> context) throws Exception {
            if (text.startsWith("^")) { // larger than all events of that step so far
                for (String before : context.getEventsForPattern(text.substring(1))) {
                    if (number(before) >= number(event)) {
                        return false;
                    }
                }
                return true;
            }
            return text.indexOf(event.charAt(0)) >= 0;
        }
    }

    static int number(String event) {
        return Integer.parseInt(event.substring(1));
    }

    static AfterMatchSkipStrategy skip(String text) {
        String[] parts = text.split(":");
        switch (parts[0]) {
            case "next":
                return AfterMatchSkipStrategy.skipToNext();
            case "past":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "first":
                return AfterMatchSkipStrategy.skipToFirst(parts[1]);
            case "last":
                return AfterMatchSkipStrategy.skipToLast(parts[1]);
            default:
                return AfterMatchSkipStrategy.noSkip();
        }
    }

    static Pattern<String, String> pattern(Deque<String> words, AfterMatchSkipStrategy skip) {
        Pattern<String, String> pattern = null;
        while (!words.isEmpty() && !words.peek().equals(")")) {
            String word = words.poll();
            if (word.equals("begin") || word.equals("next") || word.equals("followed") || word.equals("any")) {
                String name = words.poll();
                if (name.equals("(")) {
                    Pattern<String, String> group = pattern(words, AfterMatchSkipStrategy.noSkip());
                    words.poll();
                    pattern = word.equals("begin") ? Pattern.begin(group, skip)
                            : word.equals("next") ? pattern.next(group)
                            : word.equals("followed") ? pattern.followedBy(group) : pattern.followedByAny(group);
                } else {
                    pattern = word.equals("begin") ? Pattern.<String>begin(name, skip)
                            : word.equals("next") ? pattern.next(name)
                            : word.equals("followed") ? pattern.followedBy(name) : pattern.followedByAny(name);
                }
                continue;
            }
            String[] parts = word.split(":");
            switch (parts[0]) {
                case "notnext": pattern = pattern.notNext(words.poll()); break;
                case "notfollowed": pattern = pattern.notFollowedBy(words.poll()); break;
                case "where": pattern = pattern.where(new Letters(parts[1])); break;
                case "or": pattern = pattern.or(new Letters(parts[1])); break;
                case "until": pattern = pattern.until(new Letters(parts[1])); break;
                case "plus": pattern = parts.length > 1 ? pattern.oneOrMore(millis(parts[1])) : pattern.oneOrMore(); break;
                case "times": pattern = parts.length > 2 ? pattern.times(integer(parts[1]), millis(parts[2])) : pattern.times(integer(parts[1])); break;
                case "range": pattern = parts.length > 3 ? pattern.times(integer(parts[1]), integer(parts[2]), millis(parts[3]))
                        : pattern.times(integer(parts[1]), integer(parts[2])); break;
                case "more": pattern = parts.length > 2 ? pattern.timesOrMore(integer(parts[1]), millis(parts[2])) : pattern.timesOrMore(integer(parts[1])); break;
                case "optional": pattern = pattern.optional(); break;
                case "greedy": pattern = pattern.greedy(); break;
                case "combinations": pattern = pattern.allowCombinations(); break;
                case "consecutive": pattern = pattern.consecutive(); break;
                case "within": pattern = pattern.within(millis(parts[1])); break;
                case "gap": pattern = pattern.within(millis(parts[1]), WithinType.PREVIOUS_AND_CURRENT); break;
                default: throw new IllegalStateException("unknown word " + word);
            }
        }
        return pattern;
    }

    static Duration millis(String text) {
        return Duration.ofMillis(Long.parseLong(text));
    }

    static int integer(String text) {
        return Integer.parseInt(text);
    }

    static KeyedStateStore store() {
        return (KeyedStateStore) Proxy.newProxyInstance(CepDriver.class.getClassLoader(), new Class<?>[] {KeyedStateStore.class},
                (proxy, method, arguments) -> {
                    Map<Object, Object> map = new HashMap<>();
                    return Proxy.newProxyInstance(CepDriver.class.getClassLoader(), new Class<?>[] {MapState.class}, (state, called, values) -> {
                        switch (called.getName()) {
                            case "get": return map.get(values[0]);
                            case "put": return map.put(values[0], values[1]) == null ? null : null;
                            case "putAll": map.putAll((Map<?, ?>) values[0]); return null;
                            case "remove": map.remove(values[0]); return null;
                            case "contains": return map.containsKey(values[0]);
                            case "entries": return map.entrySet();
                            case "iterator": return map.entrySet().iterator();
                            case "keys": return map.keySet();
                            case "values": return map.values();
                            case "isEmpty": return map.isEmpty();
                            default: map.clear(); return null;
                        }
                    });
                });
    }

    static String shown(Map<String, List<String>> match) {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, List<String>> entry : match.entrySet()) {
            text.append(text.length() == 0 ? "" : ";").append(entry.getKey()).append("=").append(String.join(",", entry.getValue()));
        }
        return text.toString();
    }

    static String run(String line) throws Exception {
        String[] parts = line.split("\\|");
        AfterMatchSkipStrategy skip = skip(parts[0].trim());
        NFA<String> nfa;
        Pattern<String, String> pattern = pattern(new ArrayDeque<>(Arrays.asList(parts[1].trim().split(" "))), skip);
        nfa = NFACompiler.<String>compileFactory(pattern, true).createNFA();
        SharedBuffer<String> buffer = new SharedBuffer<>(store(), StringSerializer.INSTANCE);
        NFAState state = nfa.createInitialNFAState();
        StringBuilder text = new StringBuilder();
        long now = 0;
        for (String word : parts[2].trim().split(" ")) {
            String[] event = word.split("@");
            long time = Long.parseLong(event[1]);
            try (SharedBufferAccessor<String> accessor = buffer.getAccessor()) {
                for (; now < time; now++) { // one moment after the other
                    add(text, nfa.advanceTime(accessor, state, now + 1, skip));
                }
                if (!event[0].isEmpty()) {
                    for (Map<String, List<String>> match : nfa.process(accessor, state, event[0], time, skip, () -> 0L)) {
                        text.append("+").append(shown(match)).append(" ");
                    }
                }
            }
        }
        buffer.releaseCacheStatisticsTimer();
        return text.toString().trim();
    }

    static void add(StringBuilder text, Tuple2<Collection<Map<String, List<String>>>, Collection<Tuple2<Map<String, List<String>>, Long>>> found) {
        for (Map<String, List<String>> match : found.f0) {
            text.append("+").append(shown(match)).append(" ");
        }
        for (Tuple2<Map<String, List<String>>, Long> match : found.f1) {
            text.append("-").append(shown(match.f0)).append("@").append(match.f1).append(" ");
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        java.util.concurrent.ExecutorService runner = java.util.concurrent.Executors.newCachedThreadPool(task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String given = line;
            String answer;
            try { // some patterns make Flink run in circles for ever
                answer = runner.submit(() -> run(given)).get(5, java.util.concurrent.TimeUnit.SECONDS);
            } catch (java.util.concurrent.TimeoutException error) {
                answer = "! for ever";
            } catch (java.util.concurrent.ExecutionException error) {
                answer = "! " + error.getCause().getClass().getSimpleName() + " " + String.valueOf(error.getCause().getMessage()).split("\n")[0];
            }
            System.out.println(answer);
        }
        System.out.flush();
        System.exit(0);
    }
}
