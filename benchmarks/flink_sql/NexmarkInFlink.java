import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.types.RowKind;

/**
 * Runs SQL over events that lie in memory, and says how long it took.
 *
 * <p>Each line of the input is {@code BEGIN key=value key=value}, which makes a new environment with these options,
 * or a statement. The answer to a query is {@code wall, processor time (both in nanoseconds), net rows}, from the
 * first event that a source gives to the end of the sink: what comes before, planning and the start of a cluster, is
 * not Flink's speed. The answer to anything else is {@code done}; an error is {@code failed: why}.
 */
public class NexmarkInFlink {
  private static final AtomicLong started = new AtomicLong();
  private static volatile long startedCpu;
  private static volatile long ended;
  private static volatile long endedCpu;
  private static final AtomicLong netRows = new AtomicLong();

  public static void main(String[] arguments) throws Exception {
    Events.folder = Path.of(arguments[0]);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    TableEnvironment session = null;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      try {
        if (line.startsWith("BEGIN")) {
          session = newSession(line.substring("BEGIN".length()).trim());
          System.out.println("done");
        } else if (line.startsWith("SELECT")) {
          System.out.println(timed(session, line));
        } else {
          session.executeSql(line);
          System.out.println("done");
        }
      } catch (Exception error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
          cause = cause.getCause();
        }
        System.out.println("failed: " + cause.toString().replace('\n', ' '));
      }
    }
  }

  private static TableEnvironment newSession(String options) {
    Configuration values = new Configuration();
    for (String option : options.split(" ")) {
      if (!option.isEmpty()) {
        String[] pair = option.split("=", 2);
        values.setString(pair[0], pair[1]);
      }
    }
    TableEnvironment session =
        TableEnvironment.create(
            EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(values).build());
    session.createTemporarySystemFunction("count_char", CountChar.class);
    return session;
  }

  private static String timed(TableEnvironment session, String query) throws Exception {
    System.gc();
    started.set(0);
    netRows.set(0);
    TableDescriptor nowhere = TableDescriptor.forConnector("in-memory").build();
    session.sqlQuery(query).insertInto(nowhere).execute().await();
    return (ended - started.get()) + " " + (endedCpu - startedCpu) + " " + netRows.get();
  }

  private static long processorTime() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  /** The function of q14. */
  public static class CountChar extends ScalarFunction {
    public Long eval(String text, String character) {
      long found = 0;
      for (int at = 0; at < text.length(); at++) {
        if (text.charAt(at) == character.charAt(0)) {
          found++;
        }
      }
      return found;
    }
  }

  /** The columns of one kind of event, as the values that rows hold: no row makes a value. */
  private static class Events {
    static Path folder;
    private static final Map<String, Object[]> columns = new ConcurrentHashMap<>();

    static Object[] column(String kind, String name, LogicalType type) {
      return columns.computeIfAbsent(kind + "." + name, file -> read(folder.resolve(file), type));
    }

    private static Object[] read(Path file, LogicalType type) {
      try {
        switch (type.getTypeRoot()) {
          case BIGINT:
            return Arrays.stream(numbers(file)).boxed().toArray();
          case TIMESTAMP_WITHOUT_TIME_ZONE:
            return Arrays.stream(numbers(file)).mapToObj(TimestampData::fromEpochMillis).toArray();
          default:
            return Files.lines(file).map(text -> StringData.fromBytes(text.getBytes())).toArray();
        }
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }

    private static long[] numbers(Path file) throws IOException {
      ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
      long[] numbers = new long[bytes.remaining() / Long.BYTES];
      bytes.asLongBuffer().get(numbers);
      return numbers;
    }
  }

  private static class Rows implements GeneratorFunction<Long, RowData> {
    private final String kind;
    private final List<String> names;
    private final List<LogicalType> types;
    private transient Object[][] columns;

    Rows(String kind, List<String> names, List<LogicalType> types) {
      this.kind = kind;
      this.names = names;
      this.types = types;
    }

    @Override
    public void open(org.apache.flink.api.connector.source.SourceReaderContext context) {
      columns = new Object[names.size()][];
      for (int at = 0; at < columns.length; at++) {
        columns[at] = Events.column(kind, names.get(at), types.get(at));
      }
    }

    @Override
    public RowData map(Long number) {
      if (number == 0 && started.compareAndSet(0, System.nanoTime())) {
        startedCpu = processorTime();
      }
      int place = (int) (number % columns[0].length); // longer inputs are the events again
      GenericRowData row = new GenericRowData(columns.length);
      for (int at = 0; at < columns.length; at++) {
        row.setField(at, columns[at][place]);
      }
      return row;
    }
  }

  /** Takes all rows and keeps none. */
  private static class NoRows implements Sink<RowData> {
    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
      return new SinkWriter<>() {
        private long net;

        @Override
        public void write(RowData row, Context context) {
          RowKind kind = row.getRowKind();
          net += kind == RowKind.INSERT ? 1 : kind == RowKind.DELETE ? -1 : 0;
        }

        @Override
        public void flush(boolean isEnd) {
          if (isEnd) {
            ended = System.nanoTime();
            endedCpu = processorTime();
            netRows.addAndGet(net);
          }
        }

        @Override
        public void close() {}
      };
    }
  }

  /** The connector {@code in-memory}: reads the events of a kind, and writes nowhere. */
  public static class Factory implements DynamicTableSourceFactory, DynamicTableSinkFactory {
    private static final ConfigOption<String> KIND = ConfigOptions.key("kind").stringType().defaultValue("bid");
    private static final ConfigOption<Long> ROWS = ConfigOptions.key("rows").longType().defaultValue(0L);

    @Override
    public String factoryIdentifier() {
      return "in-memory";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
      return Set.of();
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
      return Set.of(KIND, ROWS);
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
      FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
      return new Source(
          helper.getOptions().get(KIND), helper.getOptions().get(ROWS), context.getPhysicalRowDataType());
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
      return new Blackhole();
    }
  }

  private static class Source implements ScanTableSource {
    private final String kind;
    private final long rows;
    private final DataType type;

    Source(String kind, long rows, DataType type) {
      this.kind = kind;
      this.rows = rows;
      this.type = type;
    }

    @Override
    public ChangelogMode getChangelogMode() {
      return ChangelogMode.insertOnly();
    }

    @Override
    @SuppressWarnings("unchecked")
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
      Rows made = new Rows(kind, DataType.getFieldNames(type), type.getLogicalType().getChildren());
      TypeInformation<RowData> information =
          (TypeInformation<RowData>) (TypeInformation<?>) context.createTypeInformation(type);
      return SourceProvider.of(
          new DataGeneratorSource<>(made, rows, RateLimiterStrategy.noOp(), information));
    }

    @Override
    public DynamicTableSource copy() {
      return new Source(kind, rows, type);
    }

    @Override
    public String asSummaryString() {
      return kind;
    }
  }

  private static class Blackhole implements DynamicTableSink {
    /** Without the rows before updates, as Flink's own blackhole. */
    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
      ChangelogMode.Builder kinds = ChangelogMode.newBuilder();
      for (RowKind kind : requested.getContainedKinds()) {
        if (kind != RowKind.UPDATE_BEFORE) {
          kinds.addContainedKind(kind);
        }
      }
      return kinds.build();
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
      return SinkV2Provider.of(new NoRows());
    }

    @Override
    public DynamicTableSink copy() {
      return new Blackhole();
    }

    @Override
    public String asSummaryString() {
      return "nowhere";
    }
  }
}
