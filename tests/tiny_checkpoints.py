"""Make tiny untrained checkpoints in the real file formats, for tests: real frame shapes, few parameters."""

import json
import string
from pathlib import Path
from typing import Any

from obygaze_features.backbones.weights import OPEN_CLIP, SINGLE_FILES
from obygaze_features.errors import BackboneError
from tests.lazy_import import lazy_import

torch = lazy_import("torch")
save_file = lazy_import("safetensors.torch", "save_file")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")
TRANSPOSED = lazy_import("obygaze_features.backbones.xclip_lsmdc_network", "TRANSPOSED")
LsmdcFormat = lazy_import("obygaze_features.backbones.xclip_lsmdc_network", "LsmdcFormat")

WIDTH = 32
LIMIT = 16
"""Maximum number of tokens of all text networks."""
MERGES = ("a n</w>", "m an</w>", "o f</w>", "s a", "sa d</w>")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase)
WORD_PARTS = tuple(f"##{letter}" for letter in string.ascii_lowercase)
END = "<|endoftext|>"
_TRANSFORMER: dict[str, Any] = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
_TEXT: dict[str, Any] = _TRANSFORMER | {
    "vocab_size": 99,
    "max_position_embeddings": 16,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_IMAGE: dict[str, Any] = _TRANSFORMER | {"patch_size": 56}


def tiny_lsmdc_format() -> Any:
    """Make the format of the tiny LSMDC network."""
    return LsmdcFormat(
        embed=64,
        vision_width=64,
        vision_layers=2,
        patch=56,
        text_width=64,
        text_layers=1,
        context=16,
        vocabulary=99,
        temporal_layers=1,
        temporal_positions=16,
        max_words=8,
    )


def tiny_checkpoint(name: str, folder: Path, *, seed: int = 0, shard_size: str = "1GB") -> Path:
    """Write a tiny untrained checkpoint and return what `weights` takes: a folder, or a file for xclip-lsmdc.

    Frames are 224 x 224, 32 a clip (12 for xclip-lsmdc), as for the real networks.

    Parameters
    ----------
    name
        `xclip`, `vivit`, `clip`, `siglip` or `xclip-lsmdc`.
    shard_size
        The largest file to write.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if name == "xclip-lsmdc":
        path = folder / "pytorch_model.bin.4"
        torch.save(tiny_lsmdc(seed), path)
        return path
    with quiet():
        untrained(lambda: _tiny_network(name), seed).save_pretrained(folder, max_shard_size=shard_size)
    return folder


def tiny_sound_checkpoint(kind: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny untrained network that hears, with the numbers of its feature extractor beside it.

    Parameters
    ----------
    kind
        Its `model_type`.
    """
    network, extractor = _tiny_hearing(kind, seed)
    folder.mkdir(parents=True, exist_ok=True)
    with quiet():
        network.save_pretrained(folder)
        extractor.save_pretrained(folder)
    return folder


def _tiny_hearing(kind: str, seed: int) -> tuple[Any, Any]:
    import transformers

    speech = _TRANSFORMER | {
        "conv_dim": (16,) * 7,
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
        "vocab_size": 8,
    }
    audio = {
        "num_mel_bins": 32,
        "spec_size": 128,
        "patch_embeds_hidden_size": 16,
        "hidden_size": 128,
        "projection_dim": 24,
        "num_attention_heads": (2, 2, 2, 2),
        "depths": (1, 1, 1, 1),
        "num_hidden_layers": 4,
        "window_size": 4,
    }
    whisper = {
        "d_model": WIDTH,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "decoder_layers": 1,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 64,
        "num_mel_bins": 20,
        "max_source_positions": 200,
        "vocab_size": 99,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
    }
    spectrogram = _TRANSFORMER | {"max_length": 128, "num_mel_bins": 32}
    speech_extractor = transformers.Wav2Vec2FeatureExtractor(do_normalize=True)
    extractors = {
        "whisper": transformers.WhisperFeatureExtractor(feature_size=20, chunk_length=4),
        "audio-spectrogram-transformer": transformers.ASTFeatureExtractor(max_length=128, num_mel_bins=32),
        "clap": transformers.ClapFeatureExtractor(
            feature_size=32, max_length_s=2, truncation="rand_trunc", sampling_rate=16_000, frequency_max=8000
        ),
        "pe_audio_encoder": transformers.PeAudioFeatureExtractor(sampling_rate=16_000, hop_length=320),
    }
    codec = {
        "model_type": "dac",
        "downsampling_ratios": [2, 4, 5, 8],
        "encoder_hidden_size": 4,
        "codebook_dim": 8,
        "decoder_hidden_size": 16,
        "n_codebooks": 1,
    }
    perception = _TRANSFORMER | {"head_dim": 16, "dac_config": codec}
    networks = {
        "wav2vec2": lambda: transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(**speech)),
        "hubert": lambda: transformers.HubertModel(transformers.HubertConfig(**speech)),
        "wavlm": lambda: transformers.WavLMModel(transformers.WavLMConfig(**speech)),
        "whisper": lambda: transformers.WhisperForConditionalGeneration(
            transformers.WhisperConfig(**whisper)
        ),
        "audio-spectrogram-transformer": lambda: transformers.ASTForAudioClassification(
            transformers.ASTConfig(**spectrogram)
        ),
        "clap": lambda: transformers.ClapModel(
            transformers.ClapConfig(text_config=_TEXT, audio_config=audio, projection_dim=24)
        ),
        "pe_audio_encoder": lambda: transformers.PeAudioEncoder(
            transformers.PeAudioEncoderConfig(**perception)
        ),
    }
    return untrained(networks[kind], seed), extractors.get(kind, speech_extractor)


def tiny_lsmdc(seed: int = 0) -> dict[str, Any]:
    """Make the tensors of a tiny LSMDC X-CLIP in the original's format, half of them float16 as there."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in tiny_lsmdc_format().shapes().items():
        value = 0.2 * torch.randn(shape, generator=generator)
        if ".ln_" in name and name.endswith("weight"):
            value += 1
        half = name.startswith("clip.") and (".in_proj_" in name or name in TRANSPOSED)
        tensors[name] = value.half() if half else value
    return tensors


def tiny_openclip(kind: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny untrained CLIP of OpenCLIP in its format on the hub, and return its folder.

    Pictures are 64 x 64; the vocabulary is the real one, since the tokenizer comes with the package.

    Parameters
    ----------
    kind
        `resnet`, a ResNet with attention pooling over 2 x 2 places, or `vit`.
    """
    import open_clip

    if kind == "resnet":
        vision: dict[str, Any] = {"layers": [1, 1, 1, 1], "width": 8}
    else:
        vision = {"layers": 2, "width": WIDTH, "head_width": 16, "patch_size": 16}
    text = {"context_length": 16, "vocab_size": 49408, "width": 8, "heads": 2, "layers": 1}
    config = {
        "embed_dim": 24,
        "quick_gelu": True,
        "vision_cfg": {"image_size": 64, **vision},
        "text_cfg": text,
    }
    generator = torch.Generator().manual_seed(seed)
    tensors = untrained(lambda: open_clip.CLIP(**config), seed).state_dict()
    for name, value in tensors.items():
        if "bn" in name and value.is_floating_point():  # OpenCLIP's start leaves residual branches at zero
            value.copy_(0.5 + torch.rand(value.shape, generator=generator))
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / OPEN_CLIP.single[0])
    document = json.dumps({"model_cfg": config, "preprocess_cfg": {}}, indent=2)
    (folder / OPEN_CLIP.config).write_text(document, encoding="utf-8")
    return folder


def tiny_text_checkpoint(name: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a tiny untrained checkpoint with a tokenizer of letters; returns what `weights` takes.

    Parameters
    ----------
    name
        `clip` or `siglip`, both halves, for `clip-text`; `xclip` and `xclip-lsmdc`, the same for theirs;
        `sentence`, a BERT with the files of sentence-transformers.
    """
    if name in {"clip", "xclip", "xclip-lsmdc"}:
        weights = tiny_checkpoint(name, folder, seed=seed)
        _write_clip_tokenizer(folder)
        return weights
    if name == "siglip":
        tiny_checkpoint("siglip", folder, seed=seed)
        _write_bert_tokenizer(folder)
    elif name == "sentence":
        _write_bert(folder, seed)
        _write_bert_tokenizer(folder)
    else:
        raise BackboneError(f"there is no tiny '{name}'")
    return folder


def write_modules(folder: Path, *, mode: str = "mean", normalise: bool = True, **changes: object) -> None:
    """Write the files of sentence-transformers on how a sentence encoder pools.

    Parameters
    ----------
    mode
        `mean`, `cls` or any other; which of them the pooling's configuration asks for.
    changes
        Fields of `sentence_bert_config.json`.
    """
    kinds = {"Transformer": "", "Pooling": "1_Pooling", **({"Normalize": "2_Normalize"} if normalise else {})}
    modules = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (kind, path) in enumerate(kinds.items())
    ]
    flags = {"mean": "mean_tokens", "cls": "cls_token", "max": "max_tokens"}
    pooling = {f"pooling_mode_{flag}": name == mode for name, flag in flags.items()}
    limits = {"max_seq_length": LIMIT, "do_lower_case": False, **changes}
    (folder / "1_Pooling").mkdir(exist_ok=True)
    for file, content in (
        ("modules.json", modules),
        ("1_Pooling/config.json", pooling),
        ("sentence_bert_config.json", limits),
    ):
        (folder / file).write_text(json.dumps(content, indent=2), encoding="utf-8")


def tiny_language_model(folder: Path, *, seed: int = 0, context: int = 32) -> Path:
    """Write a tiny untrained GPT-2 as the hub has the real one: its names of tensors, vocab.json, merges.txt.

    Parameters
    ----------
    context
        The most tokens it takes.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel

    folder.mkdir(parents=True, exist_ok=True)
    split: Any = pre_tokenizers.ByteLevel
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = split(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=280, special_tokens=[END], initial_alphabet=split.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(["a man riding a motorcycle", "a woman riding on a road"], trainer)
    tokenizer.model.save(str(folder))
    (folder / "tokenizer_config.json").write_text(f'{{"model_max_length": {context}}}', encoding="utf-8")
    config: Any = GPT2Config(
        vocab_size=tokenizer.get_vocab_size(),
        n_positions=context,
        n_embd=WIDTH,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        initializer_range=0.5,  # so that tokens are not all as probable
    )
    network = untrained(lambda: GPT2LMHeadModel(config), seed)
    tensors = {name.removeprefix("transformer."): value for name, value in network.state_dict().items()}
    del tensors["lm_head.weight"]  # tied to the embedding
    mask = torch.ones(context, context).tril()[None, None]
    masks = {f"h.{layer}.attn.bias": mask.clone() for layer in range(2)}
    save_file(tensors | masks, folder / SINGLE_FILES[0])
    config.save_pretrained(folder)
    return folder


def _tiny_network(name: str) -> Any:
    import transformers

    if name == "vivit":
        config: Any = transformers.VivitConfig(**_TRANSFORMER, tubelet_size=(2, 56, 56))
        return transformers.VivitModel(config, add_pooling_layer=False)
    if name == "xclip":
        mit = {"mit_hidden_size": 64, "mit_intermediate_size": 64, "mit_num_attention_heads": 2}
        config = transformers.XCLIPConfig(
            text_config=_TEXT,
            vision_config=_IMAGE | mit | {"num_frames": 32},
            projection_dim=64,
            prompt_num_attention_heads=2,
        )
        return transformers.XCLIPModel(config)
    if name == "clip":
        config = transformers.CLIPConfig(text_config=_TEXT, vision_config=_IMAGE, projection_dim=24)
        config.vision_config.projection_dim = 24
        return transformers.CLIPModel(config)
    if name == "siglip":
        return transformers.SiglipModel(transformers.SiglipConfig(text_config=_TEXT, vision_config=_IMAGE))
    raise BackboneError(f"there is no tiny '{name}'")


def _write_bert(folder: Path, seed: int) -> None:
    from transformers import BertConfig, BertModel

    config: Any = BertConfig(
        vocab_size=len(WORDS) + len(WORD_PARTS),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=2 * LIMIT,
        initializer_range=0.1,  # so that texts are told apart
    )
    with quiet():
        untrained(lambda: BertModel(config), seed).save_pretrained(folder)


def _write_bert_tokenizer(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join((*WORDS, *WORD_PARTS)) + "\n", encoding="utf-8")
    _write_config(folder, "BertTokenizer", do_lower_case=True)


def _write_clip_tokenizer(folder: Path) -> None:
    """Write the tokenizer of a CLIP: byte pairs, an end of word in the tokens, the end token the highest."""
    letters = string.ascii_lowercase
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), *(pair.replace(" ", "") for pair in MERGES)]
    tokens += [f"<|unused{number}|>" for number in range(97 - len(tokens))]
    tokens += ["<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n", encoding="utf-8")
    _write_config(folder, "CLIPTokenizer")


def _write_config(folder: Path, kind: str, **more: object) -> None:
    config = {"tokenizer_class": kind, "model_max_length": LIMIT, **more}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
