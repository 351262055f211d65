"""The ResourceManager and its SlotManager: TaskExecutors, their slots, and which request each slot
serves."""
