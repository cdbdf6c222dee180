"""As much of torchvision as the package grad-cam imports: names, and nothing behind them."""

from torchvision import ops as ops
from torchvision import transforms as transforms
