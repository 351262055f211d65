import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * The jobs of benchmarks/patterns.py in Flink: PatternJobs FILE JOB FEWER MORE. FILE has the bids as
 * columns of 64-bit numbers: auction, price, time. Prints the matches of MORE bids, and the bids per
 * second of processor time of the whole process: (MORE - FEWER) / (time of MORE - time of FEWER),
 * after a run that warms up.
 */
public class PatternJobs {
    public static class Bid {
        public long auction;
        public long price;
        public long time;
        public String channel;
        public String url;

        public Bid() {}
    }

    static long[][] columns;
    static final AtomicLong MATCHES = new AtomicLong();

    static class Bids implements GeneratorFunction<Long, Bid> {
        @Override
        public Bid map(Long at) {
            int row = at.intValue();
            Bid bid = new Bid();
            bid.auction = columns[0][row];
            bid.price = columns[1][row];
            bid.time = columns[2][row];
            bid.channel = "Google";
            bid.url = "https://example.org/item";
            return bid;
        }
    }

    static class Count implements Sink<Long> {
        @Override
        public SinkWriter<Long> createWriter(WriterInitContext context) {
            return new SinkWriter<Long>() {
                @Override
                public void write(Long match, Context context) {
                    MATCHES.incrementAndGet();
                }

                @Override
                public void flush(boolean end) {}

                @Override
                public void close() {}
            };
        }
    }

    static SimpleCondition<Bid> between(long low, long high) {
        return SimpleCondition.of(bid -> bid.price >= low && bid.price < high);
    }

    static IterativeCondition<Bid> above(String name) {
        return new IterativeCondition<Bid>() {
            @Override
            public boolean filter(Bid bid, Context<Bid> context) throws Exception {
                return bid.price > context.getEventsForPattern(name).iterator().next().price;
            }
        };
    }

    static Pattern<Bid, ?> pattern(String job) {
        AfterMatchSkipStrategy skip = AfterMatchSkipStrategy.skipPastLastEvent();
        Duration span = Duration.ofSeconds(10);
        switch (job) {
            case "A":
                return Pattern.<Bid>begin("a", skip).where(between(9_900_001, Long.MAX_VALUE))
                        .followedBy("b").where(between(9_900_001, Long.MAX_VALUE)).within(span);
            case "B":
                return Pattern.<Bid>begin("a", skip)
                        .next("b").where(above("a")).next("c").where(above("b")).within(span);
            default:
                return Pattern.<Bid>begin("low", skip).where(between(0, 1_000_000))
                        .next("mid").where(between(1_000_000, 9_000_000)).oneOrMore().consecutive()
                        .next("high").where(between(9_000_000, Long.MAX_VALUE)).within(span);
        }
    }

    /** A process that is stopped for some minutes, on a machine that others use, does not fail. */
    static Configuration patient() {
        Configuration configuration = new Configuration();
        for (String timeout : List.of("heartbeat.timeout", "pekko.ask.timeout", "slot.request.timeout")) {
            configuration.setString(timeout, "6 h");
        }
        return configuration;
    }

    static long run(String job, long count) throws Exception {
        MATCHES.set(0);
        com.sun.management.OperatingSystemMXBean process =
                (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long begun = process.getProcessCpuTime();
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1, patient());
        env.getConfig().enableObjectReuse();
        WatermarkStrategy<Bid> byTime = WatermarkStrategy.<Bid>forBoundedOutOfOrderness(Duration.ofMillis(50))
                .withTimestampAssigner((bid, before) -> bid.time);
        DataStream<Bid> bids = env.fromSource(
                new DataGeneratorSource<>(new Bids(), count, TypeInformation.of(Bid.class)), byTime, "bids");
        CEP.pattern(bids.keyBy(bid -> bid.auction), pattern(job))
                .select((Map<String, List<Bid>> match) -> 1L, Types.LONG)
                .sinkTo(new Count());
        env.execute(job);
        return process.getProcessCpuTime() - begun;
    }

    public static void main(String[] arguments) throws Exception {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Paths.get(arguments[0]))).order(ByteOrder.LITTLE_ENDIAN);
        int rows = bytes.remaining() / 24;
        columns = new long[3][rows];
        for (long[] column : columns) {
            for (int at = 0; at < rows; at++) {
                column[at] = bytes.getLong();
            }
        }
        String job = arguments[1];
        long fewer = Long.parseLong(arguments[2]);
        long more = Long.parseLong(arguments[3]);
        run(job, fewer);
        long little = run(job, fewer);
        long much = run(job, more);
        System.out.println(MATCHES.get() + " " + (more - fewer) * 1e9 / (much - little));
        System.out.flush();
        System.exit(0);
    }
}
