"""Generated code: functions compiled from text, user functions written out in them, and what
bytecode tells of a function."""
