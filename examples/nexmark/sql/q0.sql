-- Everything as it is.
INSERT INTO nexmark_q0
SELECT auction, bidder, price, `dateTime`, extra FROM bid
