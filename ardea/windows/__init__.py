"""Windows of rows by time or by number, for bolts that declare them: see docs/windows.md."""

from ardea.windows.bolt import WindowBolt as WindowBolt
from ardea.windows.folds import Count as Count
from ardea.windows.folds import First as First
from ardea.windows.folds import Fold as Fold
from ardea.windows.folds import Folds as Folds
from ardea.windows.folds import Last as Last
from ardea.windows.folds import Max as Max
from ardea.windows.folds import Mean as Mean
from ardea.windows.folds import Min as Min
from ardea.windows.folds import Sum as Sum
from ardea.windows.kinds import CountSliding as CountSliding
from ardea.windows.kinds import CountTumbling as CountTumbling
from ardea.windows.kinds import Global as Global
from ardea.windows.kinds import Session as Session
from ardea.windows.kinds import Sliding as Sliding
from ardea.windows.kinds import Tumbling as Tumbling
from ardea.windows.kinds import Window as Window
from ardea.windows.partial import PartialWindows as PartialWindows

__all__ = [
    "Count",
    "CountSliding",
    "CountTumbling",
    "First",
    "Fold",
    "Folds",
    "Global",
    "Last",
    "Max",
    "Mean",
    "Min",
    "PartialWindows",
    "Session",
    "Sliding",
    "Sum",
    "Tumbling",
    "Window",
    "WindowBolt",
]
