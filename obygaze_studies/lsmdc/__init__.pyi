from .plan import Plan as Plan
from .plan import Settings as Settings
from .plan import make_plan as make_plan
from .run import train as train
from .watch import Outcome as Outcome
from .watch import Watch as Watch
