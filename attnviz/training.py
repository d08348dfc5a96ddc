"""Training: parallel text to a checkpoint. Seeded, resumable where it stood, CPU or GPU by itself.

Mixed precision: a copy of the model, in bfloat16 where the device computes in it, does the forward and backward passes;
fp32 master weights take the steps (Micikevicius et al. 2018). The moving average of the master is validated and shipped.
"""

import copy
import random
import resource
import shutil
import time
from dataclasses import asdict
from pathlib import Path

import sacrebleu
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from tqdm import tqdm

from attnviz import checkpoints, corpora
from attnviz.evaluate import translate
from attnviz.mechanisms import Config
from attnviz.models import build
from attnviz.recipes import Settings, rate, settings
from attnviz.text import BOS, PAD, Text, train_vocabulary

__all__ = ["Run", "Settings", "peak_memory_mb", "settings", "train", "validate"]


def token_loss(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """logits (B, T, V), target (B, T) -> mean cross-entropy over real tokens, nats."""
    flat = logits.float().flatten(0, 1)
    return F.cross_entropy(flat, target.flatten(), ignore_index=PAD, label_smoothing=smoothing)


class Run:
    """One training run: its model, optimizer, average and place in the data; saved and restored whole.

    compile : fuse the loss over the vocabulary, which saves memory; it takes some seconds first, and needs a C++ compiler.
    """

    def __init__(self, plan: Settings, text: Text, pairs: corpora.Pairs, device: str, compile: bool = True):
        torch.manual_seed(plan.seed)
        self.plan, self.device = plan, device
        self.config = Config(plan.mechanism, len(text), plan.options)
        self.master = build(self.config).to(device)
        self.precision = "bfloat16" if computes_bfloat16(device) else "float32"  # of the forward and backward passes
        self.working = copy.deepcopy(self.master).to(getattr(torch, self.precision))
        self.average = {key: value.clone() for key, value in self.master.state_dict().items()}
        self.optimizer = torch.optim.AdamW(self._groups(), weight_decay=plan.weight_decay, fused=True)
        self.data = corpora.encode(pairs, text)
        self.loss = torch.compile(token_loss, dynamic=True) if compile and shutil.which("g++") else token_loss
        self.epoch, self.batch, self.update, self.seconds = 0, 0, 0, 0.0
        self.losses, self.counted = 0.0, 0  # sum over, and number of, the batches of this epoch
        self.history: list[dict] = []
        self.total = plan.epochs * len(self.order(0))

    def _groups(self) -> list[dict]:
        """The parameters by the factor on their learning rate. ValueError when `rates` names one that is not there."""
        named, groups = dict(self.master.named_parameters()), {}
        if unknown := self.plan.rates.keys() - named:
            raise ValueError(f"rates must name parameters of {self.plan.mechanism}; got {', '.join(sorted(unknown))}")
        for name, parameter in named.items():
            groups.setdefault(self.plan.rates.get(name, 1.0), []).append(parameter)
        return [{"params": parameters, "factor": factor} for factor, parameters in groups.items()]

    def order(self, epoch: int) -> list[list[int]]:
        """The epoch's batches: a function of seed and epoch, so that a resumed run goes on in the same order."""
        lengths = [max(len(a), len(b)) for a, b in self.data]
        return corpora.batches(lengths, self.plan.batch_tokens, random.Random(f"{self.plan.seed}/{epoch}"))

    def learn(self, batch: list[int]) -> Tensor:
        """One update on a batch of indices -> its loss."""
        source = corpora.pad([self.data[i][0] for i in batch]).to(self.device)
        target = corpora.pad([self.data[i][1] for i in batch]).to(self.device)
        inputs = F.pad(target[:, :-1], (1, 0), value=BOS)
        logits, _ = self.working(source, inputs, source != PAD)
        loss = self.loss(logits, target, self.plan.label_smoothing)
        loss.backward()
        self._update()
        return loss.detach()

    def _update(self) -> None:
        pairs = list(zip(self.master.parameters(), self.working.parameters()))
        for full, half in pairs:
            full.grad, half.grad = half.grad.float(), None
        nn.utils.clip_grad_norm_(self.master.parameters(), self.plan.clip)
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

    def averaged(self) -> nn.Module:
        """The model of the moving average, fp32, in evaluation mode."""
        model = build(self.config).to(self.device)
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
                  "losses": [self.losses, self.counted]}  # fmt: skip
        checkpoints.save_tensors(folder / "training.safetensors", tensors, beside)

    def restore(self, folder: Path) -> None:
        """Go on from `save`. ValueError when the settings are not the same, CheckpointError when the file is damaged."""
        path = folder / "training.safetensors"
        state = checkpoints.load_metadata(path, "settings", "seconds", "history", "losses")
        try:
            same = Settings(**state["settings"]) == self.plan
        except (TypeError, ValueError):  # settings that this version does not know
            same = False
        if not same:
            raise ValueError(f"{folder} holds a run with other settings; finish it, use --restart, or choose another --out")
        tensors = checkpoints.load_tensors(path)
        try:
            self._fill(tensors)
        except (KeyError, RuntimeError) as error:
            raise checkpoints.CheckpointError(f"{path} does not fit the model ({error}); use --restart") from None
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


def validate(run: Run, text: Text, val: corpora.Pairs) -> dict:
    """Loss (nats a token) and greedy BLEU (sacreBLEU 13a, lower-cased) on the validation pairs."""
    model = run.averaged()
    found = translate(model, text, [a for a, _ in val], run.device)
    bleu = sacrebleu.corpus_bleu(found, [[b for _, b in val]], lowercase=True).score
    return {"epoch": run.epoch, "val_bleu_lc": round(bleu, 2), "val_loss": round(_loss(model, text, val, run.device), 4)}


@torch.inference_mode()
def _loss(model: nn.Module, text: Text, pairs: corpora.Pairs, device: str, batch: int = 128) -> float:
    data, total, count = sorted(corpora.encode(pairs, text), key=lambda pair: len(pair[1])), 0.0, 0
    for start in range(0, len(data), batch):
        chosen = data[start : start + batch]
        source, target = (corpora.pad([pair[side] for pair in chosen]).to(device) for side in (0, 1))
        logits, _ = model(source, F.pad(target[:, :-1], (1, 0), value=BOS), source != PAD)
        real = int((target != PAD).sum())
        total, count = total + float(token_loss(logits, target, 0.0)) * real, count + real
    return total / count


def vocabulary(path: Path, pairs: corpora.Pairs, size: int) -> Text:
    """The tokenizer at `path`; learnt from the pairs and written there first when there is none."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        train_vocabulary((side for pair in pairs for side in pair), size).save(path)
    return Text.load(path)


def train(
    plan: Settings, corpus: corpora.Corpus, root: Path, pair: str, save_every: float = 60.0, compile: bool = True
) -> Path:
    """Train, resuming what `root/pair/mechanism` holds; returns that folder. The best epoch by validation BLEU ships.

    save_every : seconds between saves within an epoch. compile : see `Run`.
    """
    folder = Path(root) / pair / plan.mechanism
    text = vocabulary(Path(root) / pair / "tokenizer.json", corpus.train, plan.vocabulary)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    run = Run(plan, text, corpus.train, device, compile)
    if (folder / "training.safetensors").exists():
        run.restore(folder)
    with tqdm(total=run.total, initial=run.update, desc=f"{pair}/{plan.mechanism}", unit="batch", smoothing=0.05) as bar:
        while run.epoch < plan.epochs:
            _epoch(run, folder, bar, save_every)
            _finish(run, folder, text, corpus.val)
            bar.write(f"epoch {run.epoch}: {run.history[-1]}")
    return folder


def _epoch(run: Run, folder: Path, bar: tqdm, save_every: float) -> None:
    """What is left of the current epoch, saving the run now and then."""
    run.working.train()
    started = saved = time.monotonic()
    best = max((past["val_bleu_lc"] for past in run.history), default="–")
    for batch in run.order(run.epoch)[run.batch :]:
        run.losses, run.counted = run.losses + float(run.learn(batch)), run.counted + 1
        run.batch += 1
        bar.update()
        bar.set_postfix(epoch=run.epoch + 1, loss=f"{run.losses / run.counted:.3f}", val_bleu_lc=best, refresh=False)
        now = time.monotonic()
        if now - saved > save_every:
            run.seconds, started, saved = run.seconds + now - started, now, now
            run.save(folder)
    run.seconds += time.monotonic() - started


def _finish(run: Run, folder: Path, text: Text, val: corpora.Pairs) -> None:
    """Validate after an epoch, keep the model if it is the best so far, and save the run."""
    started = time.monotonic()
    run.epoch, run.batch = run.epoch + 1, 0
    score = validate(run, text, val)
    if score["val_bleu_lc"] > max((past["val_bleu_lc"] for past in run.history), default=-1.0):
        (folder / "card.json").unlink(missing_ok=True)  # it speaks of other weights
        checkpoints.save_model(folder, run.config, run.average)
    run.seconds += time.monotonic() - started
    loss = round(run.losses / max(run.counted, 1), 4)
    run.history.append(score | {"train_loss": loss, "seconds": round(run.seconds), "peak_memory_mb": peak_memory_mb(),
                                "device": device_name(run.device), "precision": run.precision})  # fmt: skip
    run.losses, run.counted = 0.0, 0
    run.save(folder)


def computes_bfloat16(device: str) -> bool:
    """Does the device multiply in bfloat16 itself? Where it emulates that, fp32 is faster."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # x86, x86, ARM


def device_name(device: str) -> str:
    """What a run runs on, for its card."""
    return torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} thread(s)"


def peak_memory_mb() -> int:
    """Most memory the process has held (on a GPU: that its tensors held), MB."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() // 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
