"""What a program is and what it needs, as options: by our names and by Flink's."""

from __future__ import annotations

from collections.abc import Callable

import click

from flinkpy.cli.arguments.parsing import F, refused, stands_for

_NO_JVM = "there is no JVM: leave it out, and read and write through flinkpy.connectors"
_STAND_FOR_OPTIONS = (
    (
        "python.files",
        "-pyfs",
        "--pyFiles",
        "FILES",
        "What the program imports: files, folders and zips, with commas between.",
    ),
    (
        "python.requirements",
        "-pyreq",
        "--pyRequirements",
        "FILE",
        "The requirements.txt of its functions; a folder of packages behind #.",
    ),
    (
        "python.archives",
        "-pyarch",
        "--pyArchives",
        "FILES",
        "Archives unpacked for its functions; a target folder behind #.",
    ),
    (
        "python.executable",
        "-pyexec",
        "--pyExecutable",
        "PYTHON",
        "The interpreter of its workers on Ray.",
    ),
)
_REFUSED = (
    (
        ("-pyclientexec", "--pyClientExecutable"),
        "start the program with that interpreter: PYTHON -m flinkpy run ...",
    ),
    (
        ("-pypath", "--pyPythonPath"),
        "-pyexec PYTHON names the workers' interpreter, -pyfs FOLDER what they import",
    ),
    (("-c", "--class"), "there are no classes of Java: name the program's file, or -m MODULE"),
    (("-C", "--classpath"), _NO_JVM),
    (("-j", "--jarfile"), _NO_JVM),
    (
        ("--jobmanager",),
        "clusters run on Ray: -t ray-session -D cluster.id=NAME names a session, "
        "-D ray.address=HOST:6379 the Ray cluster",
    ),
    (
        ("-z", "--zookeeperNamespace"),
        "there is no ZooKeeper: -D cluster.id=NAME tells highly available sessions apart",
    ),
    (("-e", "--executor"), "write -t TARGET"),
)


def program_options(command: F) -> F:
    """What a program is and needs. A shell and Flink's users find the same meaning by their
    names."""
    for names, instead in reversed(_REFUSED):
        command = refused(*names, instead=instead)(command)
    for key, short, long, metavar, text in reversed(_STAND_FOR_OPTIONS):
        command = _stands_for(key, short, long, metavar, text)(command)
    command = click.option("-py", "--python", "python", metavar="FILE", hidden=True)(command)
    return click.option(
        "-m",
        "-pym",
        "--pyModule",
        "module",
        metavar="MODULE",
        help=("Run this module instead of SCRIPT, as python -m does."),
    )(command)


def claim_mode(command: F) -> F:
    """The owner of the checkpoint that a job starts from, by Flink's names."""
    note = stands_for("execution.state-recovery.claim-mode")
    command = click.option("-rm", "--restoreMode", expose_value=False, callback=note, hidden=True)(
        command
    )
    return click.option(
        "-cm",
        "--claimMode",
        metavar="MODE",
        expose_value=False,
        callback=note,
        help=(
            "With -s: NO_CLAIM (default) leaves the checkpoint alone; with CLAIM the job may "
            "delete it later."
        ),
    )(command)


def chosen_program(
    script: str | None, arguments: tuple[str, ...], module: str | None, python: str | None
) -> tuple[str, tuple[str, ...]]:
    """The program's file or module, and its arguments: if an option names it, all the others."""
    if module is not None and ":" in module:
        raise click.UsageError(
            f"-m {module}: -m names a module here. A cluster on Ray is named by "
            "-t ray-session -D cluster.id=NAME, and its address by -D ray.address=HOST:6379"
        )
    named = module or python
    if named is None:
        if script is None:
            raise click.UsageError("Missing argument 'SCRIPT'.")
        return script, arguments
    return named, arguments if script is None else (script, *arguments)


def _stands_for(key: str, short: str, long: str, metavar: str, text: str) -> Callable[[F], F]:
    return click.option(
        short,
        long,
        metavar=metavar,
        expose_value=False,
        help=f"{text} (-D {key})",
        callback=stands_for(key),
    )
