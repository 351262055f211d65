"""What the verbs of DataStream and KeyedStream record: functions of recorded streams."""
