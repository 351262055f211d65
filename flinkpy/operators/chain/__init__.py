"""The operator chain of a task: wiring, fusion, outputs, and the isolation of what is handed on."""
