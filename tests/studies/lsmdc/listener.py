"""What a training says, kept."""

from obygaze_studies.lsmdc import TrainingCallbacks


class Listener(TrainingCallbacks):
    """Keep what a training says."""

    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, text):
        self.said.append(text)
