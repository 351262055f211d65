"""Registers the files that a program and its functions need, as methods of
StreamExecutionEnvironment."""

from __future__ import annotations

import os
from typing import NoReturn

from flinkpy.common.pyflink_imports import is_installed
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options import compatibility as kept_options
from flinkpy.core.program.python_files import put_on_path
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.datastream.checks import refuse
from flinkpy.datastream.streams.recorded_program import RecordedProgram

_LOG = engine_logger(__name__)


class ProgramFiles:
    """The methods, which write the options of ``program``; jobs are submitted with these."""

    program: RecordedProgram

    def add_python_file(self, file_path: str) -> None:
        """Adds a Python file, folder or zip that the program and its functions import. It is put on
        ``sys.path`` of this process, and on Ray it is sent to the job's workers. Modules beside the
        program travel with it in any case. Raises ProgramError if there is no such file."""
        try:
            put_on_path({kept_options.PYTHON_FILES.key: file_path})
        except ConfigurationError as error:
            raise refuse(f"add_python_file(): {error}") from None
        self._append(kept_options.PYTHON_FILES.key, file_path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Adds an archive (zip, tar) that the functions need. It is unpacked in their working
        directory, into a folder of its name, or into ``target_dir``, as in Flink: on Ray in that of
        the job's workers, embedded in that of this process, where the folder is a link until the
        process ends. What has that name there already stays, with a warning."""
        self._append(
            kept_options.PYTHON_ARCHIVES.key,
            archive_path if target_dir is None else f"{archive_path}#{target_dir}",
        )

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Sets the packages that the functions need, as a requirements.txt. On Ray the job's
        workers run in an environment where pip has installed them. With ``requirements_cache_dir``,
        pip uses only that folder, which every node must have. In embedded mode nothing is
        installed: ``execute`` raises ConfigurationError for packages that this process lacks, and
        warns of those that it has in another version."""
        self.program.values[kept_options.PYTHON_REQUIREMENTS.key] = (
            requirements_file_path
            if requirements_cache_dir is None
            else f"{requirements_file_path}#{requirements_cache_dir}"
        )

    def add_jars(self, *jars_path: str) -> None:
        """Raises ProgramError: there is no JVM to load a jar. In a program written for PyFlink it
        only warns: its jars bring connectors and formats, and those that flinkpy has need none."""
        named = ", ".join(map(str, jars_path)) or "a jar"
        if not is_installed():
            raise refuse(
                f"add_jars(): there is no JVM that could load {named}; take the line out, and "
                "read and write through flinkpy.connectors"
            )
        _LOG.warning(
            (
                "there is no JVM that could load %s; flinkpy's own connectors and formats need no "
                "jar"
            ),
            named,
        )

    def add_classpaths(self, *classpaths: str) -> NoReturn:
        """Raises ProgramError: there is no JVM to load a class."""
        raise refuse(
            "add_classpaths(): there is no JVM that could load "
            f"{', '.join(map(str, classpaths)) or 'a class'}; take the line out, and put "
            "Python modules on the path with add_python_file()"
        )

    def set_python_executable(self, python_exec: str) -> None:
        """Sets the interpreter of the job's workers on Ray, where every node must have it; flinkpy
        must be installed for it, on the same version of Python. In embedded mode functions run in
        this process, so ``execute`` warns if that is another one. Functions find the choice in
        ``os.environ["python"]``, as in Flink."""
        self.program.values[kept_options.PYTHON_EXECUTABLE.key] = python_exec

    def _append(self, key: str, value: str) -> None:
        before = self.program.values.get(key)
        self.program.values[key] = f"{before},{value}" if before else value

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Registers a file or folder that functions find by name:
        ``runtime_context.get_cached_file(name)``. It goes with the job as it is when that is
        submitted, and is on each worker once, under ``io.tmp.dirs``, until the job has left it. A
        URL (``s3://...``) is fetched by each worker. With ``executable`` it may be executed there.
        A name that is registered again stands for the later file only.

        Raises ProgramError for a path or name that contains ';' or ','; ``execute`` raises
        ConfigurationError if there is no such file."""
        if not all(
            isinstance(each, str) and each and not set(each) & set(";,")
            for each in (file_path, name)
        ):
            raise refuse(
                "register_cached_file() takes a path and a name without ';' and ',', these "
                f"are {file_path!r:.80} and {name!r:.80}"
            )
        key = kept_options.CACHED_FILES.key
        before = self.program.values.get(key) or ""
        others = [each for each in before.split(";") if not each.startswith(f"name:{name},")]
        path = file_path if "://" in file_path else os.path.abspath(file_path)
        entry = f"name:{name},path:{path}" + (",executable:true" if executable else "")
        self.program.values[key] = ";".join([*filter(None, others), entry])
