"""A whole cluster in one thread and virtual time. Dispatcher, ResourceManager, JobMasters and
TaskExecutors are the real ones; the network, the workers and their tasks are simulated, and fail as
a seed decides.

    from flinkpy.testing.simulation import run_seed
    report = run_seed(123)          # raises when anything is wrong, and says how to repeat the run

    python -m flinkpy.testing.simulation --seed 123 --trace
"""

from flinkpy.testing.simulation.cluster import SimulatedCluster
from flinkpy.testing.simulation.scenario import Scenario
from flinkpy.testing.simulation.seeded_run import SeedReport, run_seed
from flinkpy.testing.simulation.simulated_jobs import TaskBehaviour, random_job

__all__ = ["Scenario", "SeedReport", "SimulatedCluster", "TaskBehaviour", "random_job", "run_seed"]
