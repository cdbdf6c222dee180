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
"""The byte that fills memory until its values arrive, so that reading too early gives wrong numbers."""
REAL_TO, REAL_MODULE_TO, REAL_EMPTY = torch.Tensor.to, torch.nn.Module.to, torch.empty
NAME = "NVIDIA Pretended"


class OnCard(torch.Tensor):
    """An upload: weak references are kept of it, and not of other tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Card:
    """A fake GPU: it stands in for torch.cuda, computes on the CPU, and records what it is asked.

    Calls are of these kinds: "weights" (a network moves to the card), "pin" (memory is reserved for copies),
    "upload", "forward", "download", "event" (a place in the stream is recorded) and "synchronize" (it is
    waited for). A `late` card does downloads when they are waited for, another one at once. `fails` is a
    function of a call's kind and number, from 1: the error that the call ends with, or None.
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
        """Record a call, and raise its error if `fails` has one for it."""
        self.calls.append(kind)
        error = self.fails(kind, len(self.calls))
        if error is not None:
            try:
                raise error
            finally:
                # The error's traceback refers to this frame. Would the frame refer to the error, the two
                # would keep each other, and all tensors of the callers, in memory.
                del error

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
            tensor.pinned = True  # which `_upload` asks for
        return tensor

    def _to(self, tensor, *args, non_blocking=False, **settings):
        """Copy a tensor to the card or from it; copies that the caller waits for are not recorded."""
        is_upload = _is_cuda(args, settings)
        if is_upload and non_blocking:
            return self._upload(tensor)
        if is_upload:
            return tensor.clone()
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
    """Stands in for torch.cuda.Event: a place in the card's stream of downloads, to wait for."""

    def __init__(self, card, *, timed):
        self.card = card
        self.timed = timed
        self.before = []
        """The downloads that were queued when the event was recorded."""
        self.passed = False
        """Whether the event was waited for, so that these downloads are done."""
        self.time = None
        """The card's clock when the event was recorded, in seconds."""

    def record(self, stream):
        """Remember which downloads are queued before this event; each event takes the card a second."""
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
    """Wrap a bound method so that, set on a class, it gets the object it is called on as first argument."""

    def method(*args, **settings):
        return function(*args, **settings)

    return method


def _is_cuda(args, settings):
    device = settings.get("device", args[0] if args else None)
    return isinstance(device, torch.device) and device.type == "cuda"
