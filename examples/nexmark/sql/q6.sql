-- The average price of each seller's last ten auctions.
INSERT INTO nexmark_q6
SELECT
  Q.seller,
  AVG(Q.final) OVER (
    PARTITION BY Q.seller
    ORDER BY Q.`dateTime`
    ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
  )
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY final DESC) AS rownum
  FROM (
    SELECT A.id, A.seller, B.price AS final, B.`dateTime`
    FROM auction AS A, bid AS B
    WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  )
) AS Q
WHERE rownum <= 1
