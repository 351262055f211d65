-- Bids of each bidder by session.
INSERT INTO nexmark_q11
SELECT B.bidder, COUNT(*) AS bid_count, B.window_start AS starttime, B.window_end AS endtime
FROM TABLE(
  SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
) AS B
GROUP BY B.bidder, B.window_start, B.window_end
