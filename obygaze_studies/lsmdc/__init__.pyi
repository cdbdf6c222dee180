from .plan import TrainingPlan as TrainingPlan
from .plan import TrainingSettings as TrainingSettings
from .plan import make_plan as make_plan
from .run import Outcome as Outcome
from .run import TrainingCallbacks as TrainingCallbacks
from .run import train as train
from .step import similarities as similarities
