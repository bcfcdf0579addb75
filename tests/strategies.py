"""Random networks that the configuration accepts, small enough to build by the hundred."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st

from vitnas.config import rules
from vitnas.config.files import validate
from vitnas.config.mixers import MIXERS
from vitnas.config.model import ModelConfig
from vitnas.config.stage import StageConfig

WIDTHS = (8, 12, 16, 24)


def random_config(seed: int) -> ModelConfig:
    """A valid network; the same one for the same seed. Every field of the language is exercised."""
    rng = random.Random(seed)
    flat = rng.random() < 0.3
    tree = _flat_network(rng) if flat else _hierarchy(rng)
    tree |= {
        "name": f"random_{seed}",
        "in_chans": rng.choice([1, 3]),
        "num_classes": rng.choice([2, 10]),
        "permute": rng.choice(["always", "second", "never"]),
        "residual": rng.choice(["plain", "lrc", "scale"]),
        "norm": rng.choice(["layernorm", "layernorm_nobias", "batchnorm"]),
        "mlp_act": rng.choice(["gelu", "star_relu"]),
        "mlp_bias": rng.random() < 0.5,
        "qkv_bias": rng.random() < 0.5,
        "proj_bias": rng.random() < 0.5,
        "pos_embed": rng.choice(["learned", "none", "conditional"]),
        "head": {
            "kind": rng.choice(["linear", "mlp"]),
            "norm": rng.choice(["layernorm", "none"]),
        },
        "drop_path_rate": rng.choice([0.0, 0.1]),
        "drop_rate": rng.choice([0.0, 0.1]),
        "pos_drop_rate": rng.choice([0.0, 0.1]),
        "proj_drop_rate": rng.choice([0.0, 0.1]),
        "attn_drop_rate": rng.choice([0.0, 0.1]),
        "branch_scale": rng.choice([1.0, 1.0, 2.0]),
        "temperature": {
            "kind": rng.choice(["none", "linear", "learnable"]),
            "last": rng.choice([0.5, 0.7]),
        },
    }
    _add_stem_widths(rng, tree)
    for index, stage in enumerate(tree["stages"]):
        stage["loop"] = random.Random(f"loop {index} of {seed}").choice(["internal", "external"])
    tree["permute_inverse"] = random.Random(f"inverse of {seed}").random() < 0.7
    _split_lrc(random.Random(f"coefficients of {seed}"), tree)
    if not flat:
        _add_class_token(random.Random(f"class token of {seed}"), tree)
    _mix_mixers(random.Random(f"mixers of {seed}"), tree)
    _add_distillation_token(random.Random(f"distillation of {seed}"), tree)
    _add_reattention(rng, tree)
    if tree["reattention"]["source"] == "own":
        _add_broad(rng, tree)
    if tree["stem"]["kind"] == "deepvit" and rng.random() < 0.4:
        tree["stem"]["kind"] = "bvit"
    tree["norm_eps"] = rng.choice([1e-6, 1e-5])
    _add_downsample(rng, tree)
    tree["head"] |= {name: rng.choice([1e-6, 1e-5]) for name in ("norm_eps", "mlp_norm_eps")}
    _add_layers(rng, tree)
    if tree["stem"]["kind"] == "patch" and rng.random() < 0.4:
        tree["stem"]["kind"] = "shifted"
    for stage in tree["stages"]:
        _add_attention(rng, stage)
    _add_windows(random.Random(f"windows of {seed}"), tree)
    _add_convolutions(random.Random(f"convolutions of {seed}"), tree)
    _add_pooling(random.Random(f"pooling of {seed}"), tree)
    return validate(ModelConfig, tree)


def model_configs() -> st.SearchStrategy[ModelConfig]:
    """Hypothesis strategy over `random_config`; shrinks towards small seeds, not small networks."""
    return st.integers(0, 1 << 20).map(random_config)


def _flat_network(rng: random.Random) -> dict[str, Any]:
    """One stage, often with a class token: the shape of ViT, DeepViT and BViT."""
    class_token = rng.random() < 0.6
    mixers = [name for name, mixer in MIXERS.items() if not (class_token and mixer.facts.grid)]
    stride = rng.choice([4, 8])
    grid = (rng.choice([2, 3, 4]), rng.choice([2, 4]))
    tokens = grid[0] * grid[1] + class_token
    tree: dict[str, Any] = {
        "img_size": (grid[0] * stride, grid[1] * stride),
        "stem": {"kind": rng.choice(["patch", "conv", "metaformer", "deepvit"]), "stride": stride},
        "class_token": class_token,
        "stages": [_stage(rng, rng.choice(mixers), tokens)],
    }
    if class_token:
        tree["global_pool"] = rng.choice(["token", "avg"])
    return tree


def _hierarchy(rng: random.Random) -> dict[str, Any]:
    count, stride = rng.choice([2, 3]), rng.choice([1, 2, 4])
    kinds = ["patch", "conv"] if stride == 1 else ["patch", "conv", "metaformer", "deepvit"]
    last = (rng.choice([1, 2]), rng.choice([1, 2]))
    scale = stride << (count - 1)
    return {
        "img_size": (last[0] * scale, last[1] * scale),
        "stem": {"kind": rng.choice(kinds), "stride": stride, "width": rng.choice([4, 6])},
        "downsample": rng.choice(["conv", "metaformer", "patch", "separable"]),
        "stages": [
            _stage(rng, rng.choice(tuple(MIXERS)), last[0] * last[1] << 2 * (count - 1 - i))
            for i in range(count)
        ],
    }


def _stage(rng: random.Random, mixer: str, tokens: int) -> dict[str, Any]:
    width, passes = rng.choice(WIDTHS), rng.choice([1, 1, 2, 3])
    if MIXERS[mixer].facts.whole:
        passes = 1
    groups = [1] * passes
    if MIXERS[mixer].facts.groups != "refused":
        groups = [rng.choice(rules.divisors(tokens)) for _ in range(passes)]
    stage: dict[str, Any] = {
        "token_mixer": mixer,
        "depth": rng.choice([1, 2, 2, 3]),
        "embed_dim": width,
        "groups": groups,
        "mlp_ratio": rng.choice([0.0, 1.0, 2.5]),
        "nll_ratio": rng.choice([0.0, 0.7, 1.0]),
        "residual": rng.choice([None, "plain", "lrc", "scale"]),
        "norm": rng.choice([None, None, "layernorm", "batchnorm"]),
    }
    if MIXERS[mixer].facts.heads:
        stage |= {"num_heads": rng.choice([1, 2, 4]), "qk_scale": rng.random() < 0.7}
    if mixer in ("ska", "cska"):
        stage["key_init"] = rng.choice(["trunc_normal", "randn"])
        stage["q_proj"] = rng.random() < 0.7
    if mixer in ("dwconv", "mbconv"):
        stage["expansion"] = rng.choice([None, 1.0, 2.0, 2.6])
        stage["kernel_size"] = rng.choice([None, 3, 5, 7])
    if mixer == "mbconv":
        stage["se_ratio"] = rng.choice([0.0, 0.25])
        stage["conv_act"] = rng.choice(["relu6", "hard_swish", "silu"])
    if mixer == "mlp":
        stage["tokens_dim"] = rng.choice([None, 5])
    return stage


def _add_class_token(rng: random.Random, tree: dict[str, Any]) -> None:
    """Give some pyramids a class token; their groups divide one token more."""
    stages = tree["stages"]
    if any(MIXERS[stage["token_mixer"]].facts.grid for stage in stages) or rng.random() < 0.4:
        return
    tree |= {"class_token": True, "global_pool": rng.choice(["token", "avg"])}
    (height, width), stride = tree["img_size"], tree["stem"]["stride"]
    for index, stage in enumerate(stages):
        tokens = (height // (stride << index)) * (width // (stride << index)) + 1
        if MIXERS[stage["token_mixer"]].facts.groups != "refused":
            stage["groups"] = [rng.choice(rules.divisors(tokens)) for _ in stage["groups"]]


def _add_distillation_token(rng: random.Random, tree: dict[str, Any]) -> None:
    """Give some networks with a class token a second token; their groups divide one token more."""
    possible = tree.get("class_token") and tree["global_pool"] == "token"
    if not possible or "cska" in str(tree["stages"]) or rng.random() < 0.4:
        return
    tree["distillation_token"] = True
    (height, width), stride = tree["img_size"], tree["stem"]["stride"]
    for index, stage in enumerate(tree["stages"]):
        tokens = (height // (stride << index)) * (width // (stride << index)) + 2
        if any(number > 1 for number in stage["groups"]):
            stage["groups"] = [rng.choice(rules.divisors(tokens)) for _ in stage["groups"]]


def _split_lrc(rng: random.Random, tree: dict[str, Any]) -> None:
    """Leave some learnable residuals one of their two coefficients."""
    for holder in (tree, *tree["stages"]):
        if holder["residual"] == "lrc":
            holder["residual"] = rng.choice(["lrc", "lrc_branch", "lrc_identity"])


def _mix_mixers(rng: random.Random, tree: dict[str, Any]) -> None:
    """Give some stages of two blocks or more a second mixer."""
    for stage in tree["stages"]:
        first, second = stage["token_mixer"], rng.choice(tuple(MIXERS))
        facts, depth = MIXERS[second].facts, stage["depth"]
        problem = rules.groups_fit((first, second), 0, stage["groups"])
        if tree.get("class_token"):
            problem = problem or rules.class_token_fits((second,))
        if first == second or depth < 2 or problem or rng.random() < 0.5:
            continue
        alternating = {"pattern": [first, second]}
        at_the_end = {"pattern": [first], "last": second, "blocks": rng.randint(1, depth - 1)}
        stage["token_mixer"] = rng.choice([alternating, at_the_end])
        if facts.heads:
            stage.setdefault("num_heads", rng.choice([1, 2, 4]))


def _add_reattention(rng: random.Random, tree: dict[str, Any]) -> None:
    stages = [validate(StageConfig, stage) for stage in tree["stages"]]
    counts = [stage.count("reattention") for stage in stages]
    limit = rules.reattention_limit([(n, s.groups) for n, s in zip(counts, stages, strict=True)])
    tree["reattention_blocks"] = max(rng.randint(0, limit), rng.randint(0, limit))
    tree["reattention"] = {
        "norm": rng.choice(["batch", "layer", "none"]),
        "norm_eps": 1e-4,
        "bias": rng.random() < 0.5,
        "scale": rng.choice([1.0, 0.5]),
        "source": "own",
    }
    last = max((index for index, count in enumerate(counts) if count), default=0)
    if counts[last] > 1 and stages[last].groups == (1,) and rng.random() < 0.5:
        tree["reattention_blocks"] = rng.randint(1, counts[last] - 1)
        tree["reattention"]["source"] = "shared"


def _add_stem_widths(rng: random.Random, tree: dict[str, Any]) -> None:
    stem = tree["stem"]
    count = max(1, stem["stride"].bit_length() - 1) - 1
    if stem["kind"] == "conv" and rng.random() < 0.4:
        count += rng.choice([0, 1, 2])
        stem["convs"] = count + 1
    if stem["kind"] == "conv" and rng.random() < 0.5:
        stem["widths"] = [rng.choice([4, 6]) for _ in range(count)]


def _add_downsample(rng: random.Random, tree: dict[str, Any]) -> None:
    if len(tree["stages"]) > 1 and rng.random() < 0.3:
        tree["downsample"] = "mbconv"
        tree["downsample_expansion"] = rng.choice([1.0, 2.6, 4.0])
        tree["downsample_se_ratio"] = rng.choice([0.0, 0.05, 0.25])


def _add_broad(rng: random.Random, tree: dict[str, Any]) -> None:
    sources = [s for s in tree["stages"] if validate(StageConfig, s).facts.taps]
    if not sources or tree["stages"][-1]["embed_dim"] % sources[-1]["num_heads"]:
        return
    tree["broad"] = {
        "gamma": rng.choice([0.0, 0.4, 1.0]),
        "pool": rng.choice(["official", "layers"]),
        "scale": rng.choice(["head_dim", "embed_dim"]),
        "with_v": rng.random() < 0.7,
        "with_qk": rng.random() < 0.7,
    }


def _add_attention(rng: random.Random, stage: dict[str, Any]) -> None:
    fields = validate(StageConfig, stage).facts.fields
    if "attn_act" in fields:
        stage["attn_act"] = rng.choice(["softmax", "softmax", "gelu", "relu", "star_relu"])
        stage["mask_diagonal"] = rng.random() < 0.3
        if stage["num_heads"] < 4:  # all in use divide the widths; so must they here
            stage["attn_dim"] = rng.choice([None, None, 4, 10, 20, 40])
    if "key_kernel" in fields:
        stage["key_kernel"] = rng.choice([1, 3, 3, 5])


def _add_windows(rng: random.Random, tree: dict[str, Any]) -> None:
    for stage, grid in zip(tree["stages"], validate(ModelConfig, tree).grids, strict=True):
        if "windows" in validate(StageConfig, stage).facts.fields and not tree.get("class_token"):
            stage["windows"] = rng.choice([n for n in (1, 2, 3) if not any(s % n for s in grid)])


def _add_convolutions(rng: random.Random, tree: dict[str, Any]) -> None:
    """Give some attention convolutions, and where nothing is sliced fewer keys than tokens."""
    if len(tree["stages"]) > 1 and rng.random() < 0.2:
        tree["downsample"] = "cvt"
    for stage in tree["stages"]:
        if "kernel_qkv" not in validate(StageConfig, stage).facts.fields or rng.random() < 0.7:
            continue
        stage["kernel_qkv"] = rng.choice([1, 3, 5])
        sliced = rules.stride_fits(2, stage["groups"], stage.get("windows", 1))
        if not sliced and tree.get("broad", {}).get("gamma", 0.0) == 0.0:
            stage["stride_kv"] = rng.choice([1, 2, 3])


def _add_pooling(rng: random.Random, tree: dict[str, Any]) -> None:
    """Halve some grids by pooling."""
    tree["pooling"] = rng.choice(["max", "max_blur"])
    if len(tree["stages"]) > 1 and rng.random() < 0.15:
        tree["downsample"] = rng.choice(["maxpool", "vgg", "crelu"])
    if tree["stem"]["kind"] == "conv" and rng.random() < 0.4:
        tree["stem"]["pools"] = rng.randint(0, tree["stem"]["stride"].bit_length() - 1)
        tree["stem"] |= {
            "act": rng.choice(["relu", "crelu"]),
            "filters": rng.choice(["random", "dct"]),
        }
    head_fits = tree["head"].get("kind") != "mlp" and not tree.get("distillation_token")
    if head_fits and rng.random() < 0.15:
        tree["global_pool"] = "flatten"


def _add_layers(rng: random.Random, tree: dict[str, Any]) -> None:
    if "broad" in tree:
        layers = [None, "all", "stages", "last:1", "last:2", "last:9", "every:2", "every:3"]
        tree["broad"]["layers"] = rng.choice(layers)
