from .inputs import complete_task as complete_task
from .inputs import finish as finish
from .inputs import read_inputs as read_inputs
from .inputs import read_named as read_named
from .inputs import under_policy as under_policy
from .inputs import write_page as write_page
