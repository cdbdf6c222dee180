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
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask, take_pictures
from obygaze_features.extraction.decoders import CUDA, PYAV
from obygaze_features.extraction.films import FilePass, Films, WorkQueue
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

MAKE_CARD: Callable[[int], Card] = NvidiaCard
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
        # Number of a pass on the GPU -> its tasks that are not decoded yet, by their position in the pass.
        self._on_card: dict[Hashable, dict[int, DecodeTask]] = {}
        # Passes that the GPU did not decode, and why; they wait for a core.
        self._handed_back: deque[tuple[FilePass, str]] = deque()
        # Path of a file that the GPU does not decode -> why.
        self._reason_of_file: dict[Path | None, str] = {}
        # Key of a pass that cores decode in place of the GPU -> why.
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
            for position, file_pass in enumerate(islice(queue, SEARCHED_PASSES)):
                if self._is_for_card(file_pass):
                    del queue[position]
                    self._put_on_card(file_pass)
                    return True
        if self._handed_back and self._has_room():
            file_pass, reason = self._handed_back.popleft()
            self._put_on_cores(file_pass, reason)
            return True
        if queue and self._has_room():
            file_pass = queue.popleft()
            self._put_on_cores(file_pass, self._why_not_on_card(file_pass))
            return True
        return False

    def _is_idle(self) -> bool:
        """Return whether no pass is being decoded or waits to be given to a core."""
        if self._on_card or self._handed_back:
            return False
        return super()._is_idle()

    def _take(self, event: Event, queue: WorkQueue, films: Films | None = None) -> list[DecodedClip]:
        """Handle a message of the GPU's process or of a decode worker; return the clips that it finishes.

        Each clip gets a remark: the GPU decoded it, or why cores did in place of the GPU.
        """
        if isinstance(event.key, _CardKey):
            return self._take_from_card(event)
        clips = super()._take(event, queue, films)
        reason = self._reason_of_pass.get(event.key, "")
        ends_pass = event.kind != "item"
        if ends_pass:
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
        most_passes = CARD_THREADS + PASSES_AHEAD
        is_free = self._is_open and len(self._on_card) < most_passes
        return is_free and len(self._handed_back) < most_passes

    def _is_for_card(self, file_pass: FilePass) -> bool:
        """Return whether the GPU may decode a pass.

        Cores decode the passes that measure a stretch of a film or that use frames of such stretches, those
        of backbones that only hear, and those for which `_why_not_on_card` gives a reason.
        """
        measures_stretch = file_pass.stretch is not None
        uses_stretches = len(file_pass.stretch_frames) > 0
        if measures_stretch or uses_stretches:
            return False
        return take_pictures(file_pass.tasks) and not self._why_not_on_card(file_pass)

    def _why_not_on_card(self, file_pass: FilePass) -> str:
        """Return why the GPU cannot decode the files of a pass, to be remarked on its clips; "" if it can."""
        if not file_pass.tasks:  # a stretch of a film in which no window begins
            return ""
        if file_pass.tasks[0].strict:
            return STRICT
        return self._reason_of_file.get(file_pass.tasks[0].path, "")

    def _put_on_card(self, file_pass: FilePass) -> None:
        """Send a pass to the process of the GPU, and remember its clips until they are decoded."""
        key = next(self._pass_numbers)
        self._on_card[key] = dict(enumerate(file_pass.tasks))
        self._process.tell(_CardKey(self._process_number), NewPass(key, file_pass, self.timeout_s))

    def _put_on_cores(self, file_pass: FilePass, reason: str) -> None:
        """Give a pass to a decode worker, and remember why cores decode it; empty for no reason."""
        self._reason_of_pass[self._put(file_pass)] = reason

    def _take_from_card(self, event: Event) -> list[DecodedClip]:
        """Handle a message of the GPU's process; return the clip that it decoded, or an empty list.

        When a pass ends, its clips that the GPU did not decode are queued for cores.

        Raises
        ------
        ExtractError
            There is no GPU that decodes.
        """
        if event.key != _CardKey(self._process_number):
            return []  # of a process that was ended before
        message = event.value
        has_process_ended = event.kind != "item"
        if has_process_ended:
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
            if undone and message.for_whole_file:
                self._reason_of_file[undone[0].path] = message.reason
            if undone:
                self._handed_back.append((FilePass(undone), message.reason))
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
                self._handed_back.append((FilePass(list(undone.values())), reason))
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
        The backbones that encode the clips. The GPU on which they run decodes, or GPU 0 if they run on none.
    """
    if decoder != CUDA:
        return DecodePool(workers, timeout_s, decoder, batch_size)
    return CardPool(workers, timeout_s, batch_size, MAKE_CARD(card_number(backbones)))


def card_number(backbones: Sequence[Backbone]) -> int:
    """Return the number of the card that a backbone runs on; 0 if none does."""
    for backbone in backbones:
        device: Any = getattr(backbone.encode, "device", None)
        if getattr(device, "type", "") == "cuda":
            return int(device.index or 0)
    return 0


def refuse_without_card(backbones: Sequence[Backbone]) -> None:
    """Raise an error unless a GPU can decode.

    It is looked for in a process of its own, because a faulty driver may end the process that calls it.

    Raises
    ------
    ExtractError
        Saying what is missing.
    """
    with WorkerPool(1, _send_missing) as pool:
        pool.put("look", MAKE_CARD(card_number(backbones)), CARD_SEARCH_S)
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
