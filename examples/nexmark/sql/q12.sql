-- Bids of each bidder by windows of the machine's time.
INSERT INTO nexmark_q12
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(
  TUMBLE(
    (SELECT *, PROCTIME() AS p_time FROM bid),
    DESCRIPTOR(p_time),
    INTERVAL '10' SECOND
  )
)
GROUP BY bidder, window_start, window_end
