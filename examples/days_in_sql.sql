-- The days of January at New York's airports:  flinkpy sql -f examples/days_in_sql.sql

SET 'table.display.max-column-width' = '12';

CREATE TABLE flights (
  carrier STRING, origin STRING, dep_delay DOUBLE, `minute` INT, time_hour STRING,
  -- the planned departure, in New York's time
  planned AS TO_TIMESTAMP(time_hour, 'yyyy-MM-dd''T''HH:mm:ss''Z''')
    + CAST(`minute` AS INT) * INTERVAL '1' MINUTE - INTERVAL '5' HOUR,
  WATERMARK FOR planned AS planned - INTERVAL '24' HOUR
) WITH (
  'connector' = 'filesystem', 'path' = 'examples/data/flights.parquet', 'format' = 'parquet'
);

CREATE TEMPORARY VIEW days AS
SELECT
  origin,
  CAST(window_start AS DATE) AS `day`,
  COUNT(*) AS flights,
  COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled,
  COUNT(*) FILTER (WHERE dep_delay > 60) AS late
FROM TUMBLE(TABLE flights, DESCRIPTOR(planned), INTERVAL '1' DAY)
GROUP BY origin, window_start, window_end;

-- The five worst days of all airports together.
SELECT `day`, SUM(flights) AS flights, SUM(cancelled) AS cancelled, SUM(late) AS late
FROM days
GROUP BY `day`
ORDER BY cancelled + late DESC
LIMIT 5;

-- Each airport's week of most late flights: seven days up to the day.
SELECT origin, `day`, week_late
FROM (
  SELECT origin, `day`,
    SUM(late) OVER (PARTITION BY origin ORDER BY `day` ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week_late
  FROM days
)
QUALIFY ROW_NUMBER() OVER (PARTITION BY origin ORDER BY week_late DESC) = 1
ORDER BY origin;

-- The same by airline and airport, with sums of each airline and of all.
SELECT carrier, origin, COUNT(*) AS late
FROM flights
WHERE dep_delay > 120 AND carrier IN ('AA', 'DL', 'UA')
GROUP BY ROLLUP (carrier, origin)
ORDER BY carrier NULLS LAST, origin NULLS LAST;
