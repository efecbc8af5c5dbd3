"""Settings that every process of these tests inherits."""

import os
from pathlib import Path

# A test's Java runs for seconds: the compiler that optimises, and a collector with threads, would
# take longer than they save.
os.environ["JDK_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Workers find `spark_daemon` here.
_HERE = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), _HERE]))
# Every session that a test's own process starts, those of the command line among them.
os.environ["PYSPARK_SUBMIT_ARGS"] = (
    "--conf spark.python.daemon.module=spark_daemon --conf spark.ui.enabled=false pyspark-shell"
)
