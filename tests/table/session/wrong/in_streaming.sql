CREATE TABLE t (a INT, b STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen');
CREATE TABLE u (a INT, b STRING, ts TIMESTAMP(3)) WITH ('connector' = 'datagen');
CREATE TABLE bounded (a INT, b STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '5');
CREATE TABLE k (a INT, n BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ('connector' = 'print');
CREATE TABLE p (a INT) WITH ('connector' = 'print');
CREATE TABLE f (a INT, n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'nothing/here');
CREATE VIEW w AS SELECT ts, COUNT(*) AS n FROM t GROUP BY ts;
