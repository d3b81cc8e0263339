"""Spark batch jobs as bounded spouts.  Importing this loads neither pyspark nor pyarrow."""

from __future__ import annotations

from ardea.spark.spout import SparkSpout

__all__ = ["SparkSpout"]
