"""Where checkpoints are kept: state is written by the tasks, the manifest by the JobMaster, and
both are read when a job starts from a checkpoint."""
