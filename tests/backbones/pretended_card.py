"""A pretended CUDA card: CPU tensors, and streams that work as late (or as early) as they may.

What a card would punish by wrong numbers or by waiting is wrong or an error here: an upload is garbage until
somebody waited for its stream, so is a download until its event was waited for, memory that is not pinned is
refused by asynchronous copies, and tensors that a second stream uses must be recorded there before they go.
Any call can be told to fail.
"""

import gc
import weakref
from contextlib import contextmanager
from types import SimpleNamespace

import torch

GARBAGE = 205
REAL_TO, REAL_COPY, REAL_MODULE_TO = torch.Tensor.to, torch.Tensor.copy_, torch.nn.Module.to
NAME = "NVIDIA Pretended"


class OnCard(torch.Tensor):
    """An upload: weak references and streams are noted of it, and not of other tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Card:
    """The state of the card.

    Parameters
    ----------
    late
        Streams work when they are waited for, and not before; else at once.
    fails
        (kind of call, number of call) -> the error it ends with, or None.
    """

    def __init__(self, *, late=True, fails=lambda _kind, _number: None):
        self.late = late
        self.fails = fails
        self.streams = []
        self.main = Stream(card=self)
        self.current = self.main
        self.calls = []
        self.clock = 0.0
        self.uploads = weakref.WeakSet()
        self.alive_at_release = []
        self.unrecorded = 0

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
            "get_arch_list": lambda: ["sm_80", "sm_90"],
            "get_device_properties": lambda _device=None: SimpleNamespace(
                major=9, minor=0, total_memory=16e9
            ),
            "mem_get_info": lambda _device=None: (10e9, 16e9),
            "max_memory_allocated": lambda _device=None: 3e9,
            "Stream": lambda _device=None: Stream(card=self),
            "Event": lambda **how: Event(self, timed=how.get("enable_timing", False)),
            "current_stream": lambda _device=None: self.current,
            "stream": self._stream,
            "synchronize": lambda _device=None: [stream.synchronize() for stream in self.streams],
            "empty_cache": self._empty_cache,
        }
        for name, value in cuda.items():
            patch.setattr(torch.cuda, name, value)
        methods = {
            "to": self._to,
            "copy_": self._copy,
            "pin_memory": self._pin,
            "record_stream": self._record,
        }
        for name, method in methods.items():
            patch.setattr(torch.Tensor, name, _as_method(method))
        patch.setattr(torch.nn.Module, "to", _as_method(self._module_to))

    @contextmanager
    def _stream(self, which):
        before, self.current = self.current, which
        try:
            yield
        finally:
            self.current = before

    def _empty_cache(self):
        gc.collect(0)
        under_way = sum(len(stream.queue) for stream in self.streams)
        self.alive_at_release.append(len(self.uploads) + under_way)

    def _module_to(self, module, *args, **settings):
        if _is_cuda(args, settings):
            self.call("weights")
            settings.pop("device", None)
            return module
        return REAL_MODULE_TO(module, *args, **settings)

    def _pin(self, tensor):
        self.call("pin")
        mine = tensor.clone()
        mine.pinned = True
        return mine

    def _to(self, tensor, *args, **settings):
        if not _is_cuda(args, settings):
            return REAL_TO(tensor, *args, **settings)
        if self.current is self.main:
            return tensor.clone()  # constants
        assert settings.get("non_blocking")
        assert _is_pinned(tensor), "an asynchronous copy from memory that is not pinned"
        self.call("upload")
        there = torch.full_like(tensor, GARBAGE).as_subclass(OnCard)
        self.current.add(lambda: REAL_COPY(there.as_subclass(torch.Tensor), tensor))
        self._watch(there)
        self.uploads.add(there)
        return there

    def _copy(self, here, source, non_blocking=False):
        if not non_blocking:
            return REAL_COPY(here, source)
        assert _is_pinned(here), "an asynchronous copy to memory that is not pinned"
        assert self.current is not self.main, "a download on the computing stream"
        assert self.current.waited_for(self.main), "a download of what is not computed yet"
        self.call("download")
        taken = source.clone()
        REAL_COPY(here, torch.full_like(taken.view(torch.uint8), GARBAGE).view(taken.dtype))
        self.current.add(lambda: REAL_COPY(here, taken))
        self._watch(source)
        return here

    def _watch(self, tensor):
        tensor.streams = streams = []
        card = self

        def gone():
            card.unrecorded += not streams

        weakref.finalize(tensor, gone)

    def _record(self, tensor, stream):
        tensor.streams.append(stream)


class Stream:
    """A queue of copies."""

    def __init__(self, card):
        self.card = card
        self.queue = []
        self.waits = {}
        card.streams.append(self)

    def add(self, copy):
        """Queue a copy, or do it."""
        self.queue.append(copy)
        if not self.card.late:
            self.synchronize()

    def synchronize(self):
        """Do everything queued."""
        while self.queue:
            self.queue.pop(0)()

    def wait_stream(self, other):
        """Let this stream wait for another: here the other works now."""
        self.card.call("wait")
        other.synchronize()
        self.waits[id(other)] = self.card.clock

    def waited_for(self, other):
        """Tell whether everything computed so far was waited for."""
        return self.waits.get(id(other), -1.0) >= self.card.clock


class Event:
    """A place in a stream, with a time if asked for."""

    def __init__(self, card, *, timed):
        self.card = card
        self.timed = timed
        self.stream = None
        self.time = None

    def record(self, stream):
        """Note the place; the clock of the computing stream goes on by a second."""
        self.card.call("event")
        self.stream = stream
        if stream is self.card.main:
            self.card.clock += 1.0
            self.time = self.card.clock

    def synchronize(self):
        """Wait for the place."""
        self.card.call("synchronize")
        self.stream.synchronize()
        self.card.arrived = self.card.clock

    def elapsed_time(self, other):
        """Milliseconds between two places that were passed."""
        assert self.timed
        assert other.timed
        assert getattr(self.card, "arrived", -1.0) >= other.time, "a time read before it was waited for"
        return 1e3 * (other.time - self.time)


def _as_method(function):
    """Let a function of a class take the object it is called on, as bound methods do not."""

    def method(*args, **settings):
        return function(*args, **settings)

    return method


def _is_cuda(args, settings):
    wanted = settings.get("device", args[0] if args else None)
    return isinstance(wanted, torch.device) and wanted.type == "cuda"


def _is_pinned(tensor):
    return getattr(tensor, "pinned", False) or getattr(tensor._base, "pinned", False)
