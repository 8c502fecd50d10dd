"""The method on data larger than memory, in batches: memory maps, Parquet files, or your own."""

from unflip._blocks import Suspects
from unflip.streaming._arrow import ArrowBatches, ParquetBatches
from unflip.streaming._batches import ArrayBatches, Batches
from unflip.streaming._estimators import StreamingAudit, StreamingReweighting

__all__ = [
    "ArrayBatches",
    "ArrowBatches",
    "Batches",
    "ParquetBatches",
    "StreamingAudit",
    "StreamingReweighting",
    "Suspects",
]
