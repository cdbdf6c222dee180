from .citing import Citation as Citation
from .citing import cite as cite
from .diff import diff as diff
from .merge import merge as merge
from .publish import pack as pack
from .publish import push as push
from .transfer import pull as pull
