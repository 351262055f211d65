"""What the pages about Ray and Spark show of Spark, runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_readme import ROOT, blocks, run_on_ray

START = """
from flinkpy.spark.java import use_java
use_java()
import ray
ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False)
"""


@pytest.mark.spark
@pytest.mark.ray
@pytest.mark.timeout(300)
def test_the_frames_on_the_page_about_ray_give_what_it_says(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs flinkpy[spark]")
    pytest.importorskip("raydp", reason="needs flinkpy[spark]")
    *_, (code, text) = blocks(ROOT / "docs" / "on-ray.md")
    assert text.strip() in run_on_ray(START + code, tmp_path)


@pytest.mark.spark
@pytest.mark.ray
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", range(len(blocks(ROOT / "docs" / "spark.md"))))
def test_the_programs_on_the_page_about_spark_give_what_it_says(
    number: int, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark", reason="needs flinkpy[spark]")
    pytest.importorskip("raydp", reason="needs flinkpy[spark]")
    code, text = blocks(ROOT / "docs" / "spark.md")[number]
    assert text.strip()
    assert text.strip() in run_on_ray(START + code, tmp_path)
