"""The operator chain of a task: wiring, fusion, outputs, and operators that are parked."""
