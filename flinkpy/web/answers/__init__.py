"""What each route answers, in Flink's JSON: pure functions of what the Dispatcher tells."""
