"""A pretended CUDA card: CPU tensors, and a stream that works as late (or as early) as it may.

What a card would punish by wrong numbers or by waiting is wrong or an error here: a download is garbage until
an event after it was waited for, and memory that is not pinned is refused by asynchronous copies. Any call
can be told to fail.
"""

import gc
import weakref
from types import SimpleNamespace

import torch

GARBAGE = 205
REAL_TO, REAL_MODULE_TO, REAL_EMPTY = torch.Tensor.to, torch.nn.Module.to, torch.empty
NAME = "NVIDIA Pretended"


class OnCard(torch.Tensor):
    """An upload: weak references are kept of it, and not of other tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Card:
    """The state of the card.

    Parameters
    ----------
    late
        The stream works when it is waited for, and not before; else at once.
    fails
        (kind of call, number of call) -> the error it ends with, or None.
    """

    def __init__(self, *, late=True, fails=lambda _kind, _number: None):
        self.late = late
        self.fails = fails
        self.stream = []
        """Downloads that were asked for and not done yet, as functions in their order."""
        self.calls = []
        """The kind of each call so far."""
        self.clock = 0.0
        """Seconds: the number of events so far."""
        self.uploads = weakref.WeakSet()
        """The uploads that somebody still keeps."""
        self.alive_at_release = []
        """How many uploads were kept at each time that the allocator gave its memory back."""

    def call(self, kind):
        """Note a call, and fail if it is to."""
        self.calls.append(kind)
        error = self.fails(kind, len(self.calls))
        if error is not None:
            try:
                raise error
            finally:
                del error  # no cycle through this frame: what the caller lets go of is free

    def install(self, patch):
        """Put the card in place of torch's; `patch` is pytest's monkeypatch."""
        cuda = {
            "is_available": lambda: True,
            "device_count": lambda: 2,
            "get_device_name": lambda _device=None: NAME,
            "get_device_capability": lambda _device=None: (9, 0),
            "get_device_properties": lambda _device=None: SimpleNamespace(
                major=9, minor=0, total_memory=16e9
            ),
            "mem_get_info": lambda _device=None: (10e9, 16e9),
            "max_memory_allocated": lambda _device=None: 3e9,
            "Event": lambda **how: Event(self, timed=how.get("enable_timing", False)),
            "current_stream": lambda _device=None: self.stream,
            "empty_cache": self._empty_cache,
        }
        for name, value in cuda.items():
            patch.setattr(torch.cuda, name, value)
        patch.setattr(torch, "empty", self._empty)
        patch.setattr(torch.Tensor, "to", _as_method(self._to))
        patch.setattr(torch.nn.Module, "to", _as_method(self._module_to))

    def work(self, n_downloads):
        """Do the first downloads that are queued."""
        for _ in range(min(n_downloads, len(self.stream))):
            download = self.stream.pop(0)
            download()

    def _empty_cache(self):
        gc.collect(0)
        self.alive_at_release.append(len(self.uploads))

    def _module_to(self, module, *args, **settings):
        if _is_cuda(args, settings):
            self.call("weights")
            settings.pop("device")
            return REAL_MODULE_TO(module, **settings)
        return REAL_MODULE_TO(module, *args, **settings)

    def _empty(self, *shape, pin_memory=False, **settings):
        tensor = REAL_EMPTY(*shape, **settings)
        if pin_memory:
            self.call("pin")
            tensor.fill_(GARBAGE)
            tensor.pinned = True
        return tensor

    def _to(self, tensor, *args, non_blocking=False, **settings):
        """Copy a tensor to the card or back, or do what torch does on a CPU.

        A copy that blocks is done at once, as of constants.
        """
        if _is_cuda(args, settings):
            return self._upload(tensor) if non_blocking else tensor.clone()
        if non_blocking and torch.cuda.is_available():
            return self._download(tensor)
        return REAL_TO(tensor, *args, **settings)

    def _upload(self, tensor):
        assert getattr(tensor, "pinned", False), "an asynchronous copy from memory that is not pinned"
        self.call("upload")
        on_card = tensor.clone().as_subclass(OnCard)
        self.uploads.add(on_card)
        return on_card

    def _download(self, tensor):
        """Return garbage of the tensor's shape, and queue the copy that puts its numbers in place."""
        self.call("download")
        numbers = tensor.clone()
        copy = torch.full_like(numbers.view(torch.uint8), GARBAGE).view(numbers.dtype)
        self.stream.append(lambda: copy.copy_(numbers))
        if not self.late:
            self.work(len(self.stream))
        return copy


class Event:
    """A place in the stream, with a time if asked for."""

    def __init__(self, card, *, timed):
        self.card = card
        self.timed = timed
        self.before = []
        self.passed = False
        self.time = None

    def record(self, stream):
        """Note the place; the clock of the card goes on by a second."""
        self.card.call("event")
        self.before = list(stream)
        self.card.clock += 1.0
        self.time = self.card.clock

    def synchronize(self):
        """Wait for the place: the card does the downloads that were queued before it."""
        if not self.passed:
            self.card.call("synchronize")
            self.passed = True
            downloads_before = [download for download in self.card.stream if download in self.before]
            self.card.work(len(downloads_before))

    def elapsed_time(self, other):
        """Milliseconds between two places that were passed."""
        assert self.timed
        assert other.timed
        assert other.passed, "a time read before it was waited for"
        return 1e3 * (other.time - self.time)


def _as_method(function):
    """Let a function of a class take the object it is called on, as bound methods do not."""

    def method(*args, **settings):
        return function(*args, **settings)

    return method


def _is_cuda(args, settings):
    device = settings.get("device", args[0] if args else None)
    return isinstance(device, torch.device) and device.type == "cuda"
