"""``python -m flinkpy.spark``: puts a Java on the path of this environment, for a Ray node that is
then started in it."""

from flinkpy.core.errors import FlinkpyError
from flinkpy.spark.java import link_java, version_of

if __name__ == "__main__":
    try:
        path = link_java()
    except FlinkpyError as error:
        raise SystemExit(str(error)) from None
    print(f"{path} is Java {version_of(path)}")
