"""What commands show of jobs: one that runs, all of a session as they run, and those that have
ended."""
