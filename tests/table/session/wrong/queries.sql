CREATE DATABASE shop;
CREATE TABLE orders (id BIGINT, customer STRING, price DECIMAL(10, 2), placed TIMESTAMP(3), lines ARRAY<ROW<sku STRING, n INT>>, address ROW<street STRING, city STRING>, tags MAP<STRING, INT>, paid BOOLEAN, shipped DATE) WITH ('connector' = 'values', 'bounded' = 'true');
CREATE TABLE customers (id BIGINT, name STRING, born DATE) WITH ('connector' = 'values', 'bounded' = 'true');
CREATE TABLE shop.prices (sku STRING, price DOUBLE) WITH ('connector' = 'values', 'bounded' = 'true');
CREATE TABLE report (id BIGINT NOT NULL, total DECIMAL(10, 2), at_day DATE) WITH ('connector' = 'print');
CREATE VIEW dear AS SELECT id, price FROM orders WHERE price > 100;
