"""Decode clips on a card and on cores, from one queue; yield clips as they finish.

The process of a card gets passes as long as it has a thread for them, the decode workers get the others. A
pass that the card does not give, or has begun when its process dies, goes to the workers. Which hand decoded
a clip is remarked, not stored: the clips are the same.
"""

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from obygaze_features.backbones import Backbone
from obygaze_features.errors import ExtractError
from obygaze_features.extraction.card_process import (
    CARD_THREADS,
    CardOpened,
    ClipGiven,
    NewPass,
    PassEnded,
    serve_card,
)
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask
from obygaze_features.extraction.decoders import CUDA, PYAV
from obygaze_features.extraction.films import Films, Pass, WorkQueue
from obygaze_features.extraction.pool import DecodePool
from obygaze_features.video.hardware import Card, NvidiaCard
from obygaze_features.workers import Event, Parent, WorkerPool

MOST_STARTS = 3
"""Times that the process of a card is started: after the last death cores decode alone."""

PASSES_AHEAD = 2
"""Passes that wait in the process of a card, so that its threads find one while this process encodes."""

SEARCHED_PASSES = 64
"""Passes at the front of the queue among which one for the card is looked for."""

ON_CARD = "decoded on a card, in the bits of a core"
BY_CORES = "decoded by cores, not on the card"
"""Remarks on clips."""

STRICT = "--strict asks for what only cores tell of damage"
"""Reason why cores decode a clip."""

CARD_SEARCH_S = 60.0
"""Seconds that looking for a card may take."""

CARD: Callable[[int], Card] = NvidiaCard
"""Makes the card of a number."""


class _CardKey(NamedTuple):
    """Key of the events of the card's process: the number of the process."""

    process_number: int


class CardPool(DecodePool):
    """Decode clips on a GPU, in a process of its own, and on cores, in separate processes.

    It keeps track of the passes on the GPU, of those that it handed back, and of why passes and files are
    decoded by cores.

    Parameters
    ----------
    workers, timeout_s, batch_size
        As for `DecodePool`.
    card
        The GPU.
    """

    def __init__(self, workers: int, timeout_s: float, batch_size: int, card: Card) -> None:
        """Start the decode workers and the process of the GPU."""
        super().__init__(workers, timeout_s, PYAV, batch_size)
        self._card = card
        self._process_number = 0  # how often the process of the GPU has been started
        self._is_open = False  # whether that process can decode
        self._pass_numbers = count()
        # Number of a pass on the GPU -> position of each clip in it -> its task, until the clip is decoded.
        self._on_card: dict[Hashable, dict[int, DecodeTask]] = {}
        # Passes that the GPU did not decode, each with the reason; they wait for a core.
        self._handed_back: deque[tuple[Pass, str]] = deque()
        # Files, and passes on cores, that the GPU does not decode -> the reason.
        self._reason_of_file: dict[Path | None, str] = {}
        self._reason_of_pass: dict[Hashable, str] = {}
        self._process = self._start()

    def __exit__(self, *_: object) -> None:
        """End the process of the GPU, then the workers."""
        self._process.close()
        super().__exit__()

    # --- what the loop over the queue asks
    # -------------------------------------------------------------------------
    def _begin_next(self, queue: WorkQueue) -> bool:
        """Give one pass to the GPU or to a core that is free; return False if none could be given.

        The GPU gets the first pass that it may decode; cores get passes that the GPU handed back, then the
        first of the queue.
        """
        if self._card_has_room():
            for position, work in enumerate(islice(queue, SEARCHED_PASSES)):
                if self._is_for_card(work):
                    del queue[position]
                    self._put_on_card(work)
                    return True
        if self._handed_back and self._has_room():
            self._put_on_cores(*self._handed_back.popleft())
            return True
        if queue and self._has_room():
            work = queue.popleft()
            self._put_on_cores(work, self._why_cores(work))
            return True
        return False

    def _is_idle(self) -> bool:
        """Return whether no pass is being decoded or waits to be given to a core."""
        if self._on_card or self._handed_back:
            return False
        return super()._is_idle()

    def _take(self, event: Event, queue: WorkQueue, films: Films | None = None) -> list[DecodedClip]:
        """Return the clips of a worker's event, each with a remark on whether the GPU or cores decoded it."""
        if isinstance(event.key, _CardKey):
            return self._take_from_card(event)
        clips = super()._take(event, queue, films)
        reason = self._reason_of_pass.get(event.key, "")
        if event.kind != "item":
            self._reason_of_pass.pop(event.key, None)
        if not reason:
            return clips
        return [_remarked(clip, f"{BY_CORES}: {reason}") for clip in clips]

    # --- the card
    # -------------------------------------------------------------------------
    def _start(self) -> WorkerPool:
        """Start the process of the GPU, which sends `CardOpened` once it can decode."""
        self._process_number += 1
        self._is_open = False
        folder = Path(self._shared.name)
        serve = partial(serve_card, card=self._card, folder=folder, n_threads=CARD_THREADS)
        process = WorkerPool(1, serve, beside=self._pool)
        process.put(_CardKey(self._process_number), None)
        return process

    def _card_has_room(self) -> bool:
        """Return whether the GPU takes another pass, and cores keep up with the passes it hands back."""
        most = CARD_THREADS + PASSES_AHEAD
        return self._is_open and len(self._on_card) < most and len(self._handed_back) < most

    def _is_for_card(self, work: Pass) -> bool:
        """Return whether the GPU may decode a pass.

        Cores decode the passes that measure a stretch of a film or that use frames of such stretches, those
        that take no pictures, and those for which `_why_cores` gives a reason.
        """
        is_of_stretches = work.stretch is not None or len(work.stretch_frames) > 0
        takes_pictures = is_of_stretches or len(work.tasks[0].requests) > 0
        if is_of_stretches or not takes_pictures:
            return False
        return not self._why_cores(work)

    def _why_cores(self, work: Pass) -> str:
        """Return the reason, for a remark, why cores must decode a pass that takes pictures; "" if none."""
        if not work.tasks:
            return ""
        if work.tasks[0].strict:
            return STRICT
        return self._reason_of_file.get(work.tasks[0].path, "")

    def _put_on_card(self, work: Pass) -> None:
        """Send a pass to the process of the GPU, and remember its clips until they are decoded."""
        key = next(self._pass_numbers)
        self._on_card[key] = dict(enumerate(work.tasks))
        self._process.tell(_CardKey(self._process_number), NewPass(key, work, self.timeout_s))

    def _put_on_cores(self, work: Pass, reason: str) -> None:
        """Give a pass to a decode worker, and remember why cores decode it; empty for no reason."""
        self._reason_of_pass[self._put(work)] = reason

    def _take_from_card(self, event: Event) -> list[DecodedClip]:
        """Handle a message of the GPU's process; return the clip that it decoded, if any.

        Clips that the GPU leaves are queued for cores.

        Raises
        ------
        ExtractError
            There is no GPU that decodes.
        """
        if event.key != _CardKey(self._process_number):
            return []  # of a process that was ended before
        message = event.value
        if event.kind != "item":
            self._end_process(str(message))
        elif isinstance(message, CardOpened):
            if message.missing and self._process_number == 1:
                raise ExtractError(no_card(message.missing))
            self._is_open = not message.missing
        elif isinstance(message, ClipGiven):
            del self._on_card[message.key][message.number]
            return [_remarked(message.clip, ON_CARD)]
        elif isinstance(message, PassEnded):
            undone = list(self._on_card.pop(message.key).values())
            if undone and message.of_file:
                self._reason_of_file[undone[0].path] = message.reason
            if undone:
                self._handed_back.append((Pass(undone), message.reason))
        return []

    def _end_process(self, how: str) -> None:
        """Queue the passes of the GPU's process, which has ended, for cores; start the process again.

        It is started `MOST_STARTS` times at most. `how` says in the message how the process ended.
        """
        self._is_open = False
        self._process.close()
        reason = f"its process ended ({how}), or a clip took longer than {self.timeout_s:g} s"
        for undone in self._on_card.values():
            if undone:
                self._handed_back.append((Pass(list(undone.values())), reason))
        self._on_card.clear()
        if self._process_number < MOST_STARTS:
            self._process = self._start()


def _remarked(clip: DecodedClip, remark: str) -> DecodedClip:
    """Return a clip with one more remark."""
    return replace(clip, remarks=(*clip.remarks, remark))


def decode_pool(
    workers: int,
    timeout_s: float,
    decoder: str,
    batch_size: int,
    backbones: Sequence[Backbone] = (),
) -> DecodePool:
    """Return the pool that decodes clips on this machine: on cores, or with the decoder `cuda` also on a GPU.

    Parameters
    ----------
    workers, timeout_s, decoder, batch_size
        As for `DecodePool`.
    backbones
        The GPU on which they run decodes; the first one if they run on none.
    """
    if decoder != CUDA:
        return DecodePool(workers, timeout_s, decoder, batch_size)
    return CardPool(workers, timeout_s, batch_size, CARD(card_number(backbones)))


def card_number(backbones: Sequence[Backbone]) -> int:
    """Return the number of the card that a backbone runs on; 0 if none does."""
    for backbone in backbones:
        device: Any = getattr(backbone.encode, "device", None)
        if getattr(device, "type", "") == "cuda":
            return int(device.index or 0)
    return 0


def refuse_without_card(backbones: Sequence[Backbone]) -> None:
    """Raise an error unless a GPU can decode, tried in another process, which its driver may kill.

    Raises
    ------
    ExtractError
        Saying what is missing.
    """
    with WorkerPool(1, _send_missing) as pool:
        pool.put("look", CARD(card_number(backbones)), CARD_SEARCH_S)
        event = pool.get(2 * CARD_SEARCH_S)
    missing = "the driver of the card fails, or does not answer"
    if event is not None and event.kind == "item":
        missing = event.value
    if missing:
        raise ExtractError(no_card(missing))


def _send_missing(card: Any, parent: Parent) -> None:
    """Send the main process what is missing to decode on a GPU; empty if nothing is."""
    parent.send(card.missing())


def no_card(missing: str) -> str:
    """Return the message that no GPU can decode, and what to do."""
    return f"--decoder {CUDA}: {missing}. Without the option the cores decode"
