"""Spark batch jobs and streams as spouts.  Importing this loads neither pyspark nor pyarrow."""

from __future__ import annotations

from ardea.spark.spout import SparkSpout
from ardea.spark.streaming import SparkStreamSpout
from ardea.spark.table_tasks import ArdeaSink, ArdeaSpout
from ardea.spark.trident import SparkTridentSpout

__all__ = ["ArdeaSink", "ArdeaSpout", "SparkSpout", "SparkStreamSpout", "SparkTridentSpout"]
