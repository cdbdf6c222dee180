"""The oracle's three steps, by the project's own step and optimiser.

Run as a program it is one of several processes: it does what its first argument says and writes what it got.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.lazy_import import lazy_import

torch = lazy_import("torch")
LsmdcSettings = lazy_import("obygaze_studies.lsmdc", "LsmdcSettings")
load_file = lazy_import("safetensors.torch", "load_file")
save_file = lazy_import("safetensors.torch", "save_file")
LsmdcFormat = lazy_import("obygaze_features.backbones.xclip_lsmdc_network", "LsmdcFormat")
XClipLsmdc = lazy_import("obygaze_features.backbones.xclip_lsmdc_network", "XClipLsmdc")
train = lazy_import("obygaze_studies.lsmdc", "train")
execution = lazy_import("obygaze_studies.lsmdc.execution")
rules = lazy_import("obygaze_studies.lsmdc.step")

PAIRS = 6
"""Clips with their captions in each of the oracle's batches."""


class Oracle:
    """What the original modules gave, and the network that they started from.

    Attributes
    ----------
    folder
        Holds all of it.
    inputs
        Frames, masks and tokens of the three batches.
    run
        The settings of the original's run.
    tensors
        What is known of the network's tensors.
    similarities
        Of clips and captions, as the original computed them.
    size
        The format of the network.
    """

    def __init__(self, folder):
        self.folder = folder
        self.inputs = dict(np.load(folder / "inputs.npz"))
        self.run = json.loads((folder / "run.json").read_text())
        self.tensors = json.loads((folder / "tensors.json").read_text())
        self.similarities = dict(np.load(folder / "similarities.npz"))
        self.size = LsmdcFormat.of("oracle", self.load("initial"))

    def load(self, name):
        """Read the tensors of a file."""
        return load_file(self.folder / f"{name}.safetensors")

    def network(self, arithmetic="float32"):
        """Make the network that the original started from."""
        network = network_of(self.size, self.load("initial"))
        execution.convert(network, self.size, arithmetic)
        return network

    def batch(self, step):
        """Return the clips and captions of a step, 0 to 2."""
        mask = torch.from_numpy(self.inputs["video_mask"][step]).bool()
        frames = torch.from_numpy(self.inputs["frames_u8"][step].transpose(0, 1, 3, 4, 2).copy())
        return rules.Batch(frames[mask], mask, torch.from_numpy(self.inputs["input_ids"][step]))


def originals_of(size):
    """Port's name -> original's."""
    return {name: size.original_name(name) for name in size.port()}


def network_of(size, tensors):
    """Make a network of tensors in the original's format, of which those that the original trains are."""
    network = XClipLsmdc(size).eval()
    original = originals_of(size)
    network.load_state_dict(size.to_port("given", tensors))
    for name, value in network.named_parameters():
        value.requires_grad_(rules.is_trained(original[name]))
    return network


def learn(network, size, batches, pairs, *, rate, scale, total, **how):
    """Take a step a batch; gives losses, norms, the trained tensors and the optimiser."""
    trained = {name: value for name, value in network.named_parameters() if value.requires_grad}
    original = originals_of(size)
    group = {name: rules.group_of(original[name], rate, scale) for name in trained}
    optimiser = rules.BertAdam(trained, group, total)
    losses = []
    norms = []
    for batch in batches:
        losses.append(rules.compute_gradients(network, size, batch, pairs, **how))
        norms.append(rules.clip_gradients(trained.values()))
        optimiser.step()
        with torch.no_grad():
            network.logit_scale.clamp_(max=rules.LARGEST_SCALE)
    return losses, norms, trained, optimiser


class Trained(NamedTuple):
    """A network after three steps of training.

    Attributes
    ----------
    parameters
        Its trained tensors, by the names that the original code gives them.
    losses, norms
        The loss of each step, and the norm of all its gradients together.
    optimiser
        The optimiser, whose moments `m` and `v` are running means of each gradient and of its square.
    """

    parameters: dict[str, Any]
    losses: list[float]
    norms: list[float]
    optimiser: Any


def three_steps(oracle, *, processes=None, arithmetic="float32", lr=None, scale=None, **how):
    """Take the three steps that the original code took from the oracle's network, with our code.

    Parameters
    ----------
    oracle
        The network, the three batches of pairs and the original's settings.
    processes
        The processes that share each batch; one by default.
    arithmetic
        The data types: "float32", "bfloat16", or "published", in which most tensors are float16.
    lr, scale
        The learning rate, and the factor on it for tensors of CLIP; by default those of the oracle.
    how
        What else `compute_gradients` takes, such as `chunk`, the pairs that are computed at once, and
        `gather_share`, a factor of the gradients of the networks that make embeddings.
    """
    processes = processes or execution.Processes()
    mine = processes.share(PAIRS)
    batches = [oracle.batch(step).part(mine.start, mine.stop) for step in range(3)]
    rates = {"rate": lr or oracle.run["lr"], "scale": scale or oracle.run["coef_lr"]}
    how |= {"total": oracle.run["total_steps"], "processes": processes, "arithmetic": arithmetic}
    network = oracle.network(arithmetic)
    losses, norms, trained, optimiser = learn(network, oracle.size, batches, PAIRS, **rates, **how)
    parameters = oracle.size.from_port({name: value.detach() for name, value in trained.items()})
    return Trained(parameters, losses, norms, optimiser)


def largest_difference(tensors, expected):
    """Return the largest difference of any number of two networks that have tensors of the same names."""
    assert tensors.keys() == expected.keys()
    return max(float((tensors[name] - expected[name]).abs().max()) for name in expected)


VARIANTS = {
    "share 1": {},
    "share 1/2": {"gather_share": 0.5},
    "share 1/4, chunks of 2": {"gather_share": 0.25, "chunk": 2},
    "share 1, uneven, chunks of 3": {"uneven": True, "chunk": 3},
}
"""How two processes take the three steps: name -> arguments of `three_steps`.

The names have the factor of the gradients of all that comes before embeddings are gathered (`gather_share`),
and how many pairs are computed at once. If uneven, the first process has four of the six pairs.
"""


def main(oracle, out, settings):
    """Do every variant, then a small training, as one of the processes that the environment names."""

    class Uneven(execution.Processes):
        """Two processes of which the first takes four of the six pairs."""

        def share(self, items):
            return slice(0, 4) if self.rank == 0 else slice(4, items)

    torch.set_num_threads(1)
    oracle = Oracle(Path(oracle))
    out = Path(out)
    with execution.join_processes(torch.device("cpu")) as processes:
        for name, options in VARIANTS.items():
            settings_of_steps = dict(options)
            kind = Uneven if settings_of_steps.pop("uneven", False) else execution.Processes
            trained = three_steps(
                oracle, processes=kind(processes.rank, processes.count), **settings_of_steps
            )
            save_file(trained.parameters, out / f"{name.replace('/', ' of ')}.{processes.rank}")
    options = json.loads(settings)
    paths = {name: Path(options.pop(name)) for name in ("annotations", "videos", "out", "cache")}
    train(LsmdcSettings(**options, **paths))


if __name__ == "__main__":
    main(*sys.argv[1:])
