"""How a job graph runs: which subtasks fail together, and which are scheduled when."""
