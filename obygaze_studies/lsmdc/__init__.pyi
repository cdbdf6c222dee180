from .plan import LsmdcPlan as LsmdcPlan
from .plan import LsmdcSettings as LsmdcSettings
from .plan import make_plan as make_plan
from .run import Outcome as Outcome
from .run import TrainingCallbacks as TrainingCallbacks
from .run import train as train
from .step import similarities as similarities
