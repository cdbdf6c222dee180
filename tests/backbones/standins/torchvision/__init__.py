"""As much of torchvision as grad-cam and open_clip import: names, and nothing behind them."""

from torchvision import ops as ops
from torchvision import transforms as transforms
