"""How a job graph runs: which subtasks fail together, which are scheduled when, and all of that as
one plan, which can be replaced."""
