-- Departure delays in New York, in SQL:  flinkpy sql -f examples/flights_in_sql.sql

CREATE TABLE flights (
  carrier STRING, tailnum STRING, origin STRING, dest STRING, dep_delay DOUBLE, distance BIGINT
) WITH (
  'connector' = 'filesystem', 'path' = 'examples/data/flights.parquet', 'format' = 'parquet'
);

CREATE TABLE airports (
  faa STRING, name STRING, lat DOUBLE, lon DOUBLE, alt INT, tz INT, dst STRING, tzone STRING
) WITH (
  'connector' = 'filesystem', 'path' = 'examples/data/airports.csv', 'format' = 'csv',
  'csv.header' = 'true'
);

-- A view is a query with a name. A flight without a delay was cancelled.
CREATE TEMPORARY VIEW departures AS
SELECT carrier, origin, dest, distance, dep_delay, dep_delay > 60 AS is_late
FROM flights
WHERE dep_delay IS NOT NULL;

-- The airlines whose flights leave latest.
SELECT
  carrier,
  COUNT(*) AS departed,
  COUNT(*) FILTER (WHERE is_late) AS late,
  CAST(AVG(dep_delay) AS DECIMAL(6, 2)) AS mean_delay
FROM departures
GROUP BY carrier
HAVING COUNT(*) > 500
ORDER BY mean_delay DESC
LIMIT 5;

-- Where one flies to from each airport: the two most frequent destinations.
SELECT origin, name, flights
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY flights DESC) AS place
  FROM (
    SELECT d.origin, a.name, COUNT(*) AS flights
    FROM departures AS d
    JOIN airports AS a ON d.dest = a.faa
    GROUP BY d.origin, a.name
  )
)
WHERE place <= 2
ORDER BY origin, flights DESC;

-- The airlines that fly from all three airports.
SELECT carrier, COUNT(DISTINCT origin) AS airports, SUM(distance) AS miles
FROM departures
GROUP BY carrier
HAVING COUNT(DISTINCT origin) = 3
ORDER BY miles DESC;
