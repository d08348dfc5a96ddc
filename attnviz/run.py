"""A run: a model that is learning, its optimizer and its place in the data; saved and restored whole. CPU or GPU by itself.

Mixed precision: a copy of the model, in bfloat16 where the device computes in it, does the forward and backward passes;
fp32 master weights take the steps (Micikevicius et al. 2018). Their moving average is what is validated and shipped.
"""

import copy
import hashlib
import random
import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz import checkpoints, corpora
from attnviz.devices import computes_bfloat16
from attnviz.evaluate import translate
from attnviz.mechanisms import Config
from attnviz.models import build
from attnviz.recipes import Settings, rate
from attnviz.text import BOS, PAD, SPECIALS, UNK, Text
from attnviz.trained import LONGEST


class Diverged(ValueError):
    """Training has left the numbers behind; what was saved before stays as it is."""

    def __init__(self, epoch: int, what: str):
        super().__init__(f"training has diverged in epoch {epoch}: {what}; begin again with a lower learning_rate (--restart)")


def token_loss(logits: Tensor, target: Tensor, smoothing: float, padding: int = PAD) -> Tensor:
    """logits (B, T, V), target (B, T) -> mean cross-entropy over real tokens, those that are not `padding`, nats."""
    flat = logits.float().flatten(0, 1)
    return F.cross_entropy(flat, target.flatten(), ignore_index=padding, label_smoothing=smoothing)


def disagreement(logits: Tensor, target: Tensor, padding: int = PAD) -> Tensor:
    """logits (2 B, T, V), two passes one after the other, target (B, T) -> half of KL(p || q) + KL(q || p), the mean over
    real tokens, nats. R-Drop, Liang et al. 2021, eq. 2."""
    p, q = (torch.log_softmax(half.float(), dim=-1) for half in logits.chunk(2))
    apart, real = ((p.exp() - q.exp()) * (p - q)).sum(dim=-1), target != padding
    return (apart * real).sum() / real.sum() / 2


def drop_words(source: Tensor, share: float) -> Tensor:
    """source (B, S) with that share of its pieces, drawn at random, made unknown; never <pad> or <eos>."""
    if not share:
        return source
    return source.masked_fill((torch.rand(source.shape, device=source.device) < share) & (source >= len(SPECIALS)), UNK)


class Run:
    """One training run: its model, optimizer, average and place in the data; saved and restored whole.

    compile : fuse the loss over the vocabulary, which saves memory; it takes some seconds first, and needs a C++ compiler.
    What it learns is in `encode`, `logits` and `answers`; a subclass may learn something else.
    """

    padding = PAD  # what in a target is no part of it

    def __init__(self, plan: Settings, text: Text, pairs: corpora.Pairs, device: str, compile: bool = True):
        torch.manual_seed(plan.seed)
        self.plan, self.device = plan, device
        self.config = Config(plan.mechanism, len(text), plan.options)
        self.master = build(self.config).to(device)
        self.precision = "bfloat16" if computes_bfloat16(device) else "float32"  # of the forward and backward passes
        self.working = copy.deepcopy(self.master).to(getattr(torch, self.precision))
        self.average = {key: value.clone() for key, value in self.master.state_dict().items()}
        self.optimizer = torch.optim.AdamW(self._groups(), betas=(0.9, plan.beta2), weight_decay=plan.weight_decay, fused=True)
        self.pairs, self.whole = pairs, self.encode(pairs, text)
        self.data = self.whole  # as the current epoch reads it
        self.loose = text.loosened(plan.piece_dropout) if plan.piece_dropout else None  # reads the pairs anew
        self.digest = hashlib.sha256(repr(self.data).encode()).hexdigest()  # of the data, that a resumed run goes on with it
        fuse = partial(torch.compile, dynamic=True) if compile and shutil.which("g++") else lambda function: function
        self.loss, self.apart = fuse(token_loss), fuse(disagreement)
        self.epoch, self.batch, self.update, self.seconds = 0, 0, 0, 0.0
        self.losses, self.counted = 0.0, 0  # sum over, and number of, the batches of this epoch
        self.history: list[dict] = []
        self.total = self._loose_epochs * len(self.order(0)) + (plan.epochs - self._loose_epochs) * len(self.order(plan.epochs))

    def _groups(self) -> list[dict]:
        """The parameters by the factor on their learning rate. ValueError when `rates` names one that is not there."""
        named, groups = dict(self.master.named_parameters()), {}
        if unknown := self.plan.rates.keys() - named:
            raise ValueError(f"rates must name parameters of {self.plan.mechanism}; got {', '.join(sorted(unknown))}")
        for name, parameter in named.items():
            groups.setdefault(self.plan.rates.get(name, 1.0), []).append(parameter)
        return [{"params": parameters, "factor": factor} for factor, parameters in groups.items()]

    def order(self, epoch: int) -> list[list[int]]:
        """The epoch's batches: a function of seed and epoch, so that a resumed run goes on in the same order.

        Under piece dropout the data is read anew for each epoch, which no seed rules: there the order is about the same. The
        last fifth of the epochs reads pieces whole, as they will be read ever after; without these a model is worse.
        """
        self.data = self._loosened() if epoch < self._loose_epochs else self.whole
        return self.batches(epoch)

    def batches(self, epoch: int) -> list[list[int]]:
        """`data` in batches of like lengths, in an order that seed and epoch rule."""
        lengths = [max(len(a), len(b)) for a, b in self.data]
        return corpora.batches(lengths, self.plan.batch_tokens, random.Random(f"{self.plan.seed}/{epoch}"))

    @property
    def _loose_epochs(self) -> int:
        """The epochs under piece dropout, which come first."""
        return round(self.plan.epochs * 0.8) if self.loose else 0

    def _loosened(self) -> list[tuple[list[int], list[int]]]:
        """The data under piece dropout; whole where it makes more pieces of a sentence than models read."""
        both = zip(self.encode(self.pairs, self.loose), self.whole)
        return [loose if max(map(len, loose)) <= LONGEST else whole for loose, whole in both]

    def learn(self, batch: list[int]) -> Tensor:
        """One update on a batch of indices -> its loss."""
        loss = self.objective(batch)
        loss.backward()
        self._update()
        return loss.detach()

    def objective(self, batch: list[int]) -> Tensor:
        """The loss on a batch of indices."""
        source, target = self.tensors(batch)
        return self._consistent(source, target) if self.plan.consistency else self._plain(source, target)

    def tensors(self, batch: list[int]) -> tuple[Tensor, Tensor]:
        """The sources (B, S) and targets (B, T) of a batch of indices, words dropped as the settings say."""
        source, target = (corpora.pad([self.data[i][side] for i in batch]).to(self.device) for side in (0, 1))
        return drop_words(source, self.plan.word_dropout), target

    @staticmethod
    def encode(pairs: corpora.Pairs, text: Text) -> list[tuple[list[int], list[int]]]:
        """Each pair as the ids that go in and those that should come out."""
        return corpora.encode(pairs, text)

    @staticmethod
    def logits(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
        """source (B, S), target (B, T) -> logits (B, T, V) of each target token, given those before it."""
        return model(source, F.pad(target[:, :-1], (1, 0), value=BOS), source != PAD)[0]

    @staticmethod
    def answers(model: nn.Module, text: Text, sentences: list[str]) -> list[str]:
        """What a model in evaluation mode says of each sentence."""
        return translate(model, text.spaced(), sentences, next(model.parameters()).device)

    def _logits(self, source: Tensor, target: Tensor) -> Tensor:
        return self.logits(self.working, source, target)

    def _plain(self, source: Tensor, target: Tensor) -> Tensor:
        return self.loss(self._logits(source, target), target, self.plan.label_smoothing, self.padding)

    def _consistent(self, source: Tensor, target: Tensor) -> Tensor:
        """R-Drop, half of its eq. 4: the loss is the mean of two passes, each under a dropout of its own."""
        source, twice = source.repeat(2, 1), target.repeat(2, 1)
        logits = self._logits(source, twice)
        apart = self.apart(logits, target, self.padding)
        return self.loss(logits, twice, self.plan.label_smoothing, self.padding) + self.plan.consistency / 2 * apart

    def _update(self) -> None:
        pairs = list(zip(self.master.parameters(), self.working.parameters()))
        for full, half in pairs:
            full.grad, half.grad = half.grad.float(), None
        if not nn.utils.clip_grad_norm_(self.master.parameters(), self.plan.clip).isfinite():
            raise Diverged(self.epoch + 1, "the loss has no gradient that is a number")
        for group in self.optimizer.param_groups:
            group["lr"] = rate(self.update, self.total, self.plan) * group["factor"]
        self.optimizer.step()
        self.update += 1
        keep = min(self.plan.average, self.update / (self.update + 10))
        with torch.no_grad():
            for full, half in pairs:
                half.copy_(full)
            for key, value in self.master.state_dict().items():
                self.average[key].lerp_(value, 1 - keep)

    def begin(self, weights: dict[str, Tensor]) -> None:
        """Take these weights instead of random ones. RuntimeError when they are another model's."""
        self.master.load_state_dict({key: value.float() for key, value in weights.items()})
        self.working.load_state_dict(self.master.state_dict())
        self.average = {key: value.clone() for key, value in self.master.state_dict().items()}

    def averaged(self) -> nn.Module:
        """The model of the moving average, fp32, in evaluation mode."""
        model = copy.deepcopy(self.master)  # rather than built, which would draw random numbers
        model.load_state_dict(self.average)
        return model.eval()

    def save(self, folder: Path) -> None:
        """Everything that going on needs, in one file: training.safetensors."""
        tensors = {f"average.{key}": value for key, value in self.average.items()}
        for name, parameter in self.master.named_parameters():
            tensors[f"master.{name}"] = parameter
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer.{key}.{name}"] = value
        tensors["rng"] = torch.get_rng_state()
        if self.device == "cuda":
            tensors["rng_cuda"] = torch.cuda.get_rng_state()
        tensors["place"] = torch.tensor([self.epoch, self.batch, self.update])
        beside = {"settings": asdict(self.plan), "seconds": self.seconds, "history": self.history,
                  "losses": [self.losses, self.counted], "data": self.digest}  # fmt: skip
        checkpoints.save_tensors(folder / "training.safetensors", tensors, beside)

    def restore(self, folder: Path) -> None:
        """Go on from `save`. ValueError when settings or data are not the same, CheckpointError when the file is damaged."""
        path = folder / "training.safetensors"
        state = checkpoints.load_metadata(path, "settings", "seconds", "history", "losses")
        other = differing(state["settings"], self.plan)
        if not other and state.get("data", self.digest) != self.digest:
            other = "data"
        if other:
            raise ValueError(f"{folder} holds a run with other {other}; give the same again, use --restart, or choose another --out")
        tensors = checkpoints.load_tensors(path)
        try:
            self._fill(tensors)
        except (KeyError, RuntimeError) as error:
            raise checkpoints.CheckpointError(f"{path} does not fit the model ({error})") from None
        self.seconds, self.history = state["seconds"], state["history"]
        self.losses, self.counted = state["losses"]

    def _fill(self, tensors: dict[str, Tensor]) -> None:
        self.average = {key: tensors[f"average.{key}"].to(self.device) for key in self.average}
        with torch.no_grad():
            for (name, full), half in zip(self.master.named_parameters(), self.working.parameters()):
                full.copy_(tensors[f"master.{name}"])
                half.copy_(full)
                kept = {key: tensors[f"optimizer.{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq")}
                self.optimizer.state[full] = {key: value.to(self.device) for key, value in kept.items()}
        torch.set_rng_state(tensors["rng"])
        if self.device == "cuda" and "rng_cuda" in tensors:  # not in those of a run begun on the CPU
            torch.cuda.set_rng_state(tensors["rng_cuda"])
        self.epoch, self.batch, self.update = tensors["place"].tolist()


def differing(saved: dict, plan: Settings) -> str:
    """In words, which settings of a saved run are not the plan's; "" when all are."""
    try:
        was, wanted = asdict(Settings(**saved)), asdict(plan)
    except (TypeError, ValueError):  # settings that this version does not know
        return "settings"
    for of in (was, wanted):
        of |= {name: " ".join(digest[:8] for digest in of[name].split()) or "none" for name in ("start", "teachers")}
    apart = "; ".join(f"{name} {was[name]}, now {wanted[name]}" for name in was if was[name] != wanted[name])
    return apart and f"settings ({apart})"
