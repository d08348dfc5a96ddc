"""`python -m attnviz try`: a module of one's own is checked, trained beside others for a moment, and shown."""

import os
import subprocess
import sys

import listings
import pytest
from listings import Attn
from torch import nn

import attnviz
from attnviz import mechanisms, own
from attnviz.__main__ import main
from attnviz.cli import page, tryout
from attnviz.own import train

ADDITIVE = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, enc_hid_dim, dec_hid_dim):
        super().__init__()
        self.attn = nn.Linear(enc_hid_dim * 2 + dec_hid_dim, dec_hid_dim)
        self.v = nn.Linear(dec_hid_dim, 1, bias=False)
        self.noise = torch.Generator()  # which needs a part of torch that the process of the models leaves out
    def forward(self, hidden, encoder_outputs):
        hidden = hidden.unsqueeze(1).expand(-1, encoder_outputs.shape[1], -1)
        energy = torch.tanh(self.attn(torch.cat((hidden, encoder_outputs), dim=2)))
        return torch.softmax(self.v(energy).squeeze(2), dim=1)
"""


@pytest.fixture(autouse=True)
def short_test(monkeypatch):
    """A shorter test of what was learnt."""
    monkeypatch.setattr(train, "_TESTED", 30)


@pytest.fixture
def mine(tmp_path):
    (tmp_path / "mine.py").write_text(ADDITIVE)
    yield f"{tmp_path}/mine.py:Attention"
    for name in ("yours", "yours-trained"):
        mechanisms.MECHANISMS.pop(name, None)
        mechanisms.ALL.pop(name, None)


def test_a_module_is_trained_beside_others_and_its_folder_opens_in_a_new_process(mine, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    assert main(["try", mine, "--seconds", "1.2", "--order", "previous", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines() if line.startswith(("Yours", "Bahdanau", "Luong"))]
    assert len(rows) == 3 and all(int(row[-3]) > 3 for row in rows)
    legend = text.partition("\nalignment error: ")[2].replace("\n", " ")
    assert "looks most (its largest weight) at another letter" in legend and "Lower is better: 0 is always r" in legend
    assert text.startswith("Attention(enc_hid_dim=12, dec_hid_dim=8)\nrecognised as")
    environment = {"ATTNVIZ_MECHANISMS": f"{out}/yours.py:YOURS", "ATTNVIZ_CHECKPOINTS": str(out)}
    assert all(f"{name}={value}" in text for name, value in environment.items())
    assert "in a trained model: en-fr/luong-concat on 3 sentences: the same translations" in text
    program = (
        "from attnviz.service.process import import_torch; import_torch(); import attnviz; "
        "print(attnviz.available(), attnviz.load('reverse/yours').trace('a b c').source, "
        "attnviz.load('en-fr/yours-trained').trace('A dog runs.').translation)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    assert "'reverse/bahdanau', 'reverse/luong-general', 'reverse/yours'" in shown.stdout and "'c'" in shown.stdout
    assert attnviz.load("en-fr/luong-concat").trace("A dog runs.").translation in shown.stdout
    # an edit that leaves the parameters as they are: the trained weights are of the code before it
    mechanisms.remove("yours")
    mechanisms.read(f"{out}/yours.py:YOURS")
    edited = tmp_path / "mine.py"
    edited.write_text(ADDITIVE.replace("torch.tanh", "torch.relu"))
    with pytest.raises(
        ValueError, match="mine.py:Attention has changed since it was trained: run `python -m attnviz t"
    ):
        attnviz.load("reverse/yours", out)
    # an earlier try is replaced; --open runs the command that is printed
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert main(["try", mine, "--seconds", "0.01", "--out", str(out), "--task", "sort", "--open"]) == 2
    printed = capsys.readouterr()
    assert f"/bin/false -m streamlit run {page.file()}" in printed.out
    assert "try: the page ended with an error" in printed.err
    assert attnviz.available(out) == ["en-fr/yours-trained", "sort/bahdanau", "sort/luong-general", "sort/yours"]


def test_self_attention_is_trained_and_stands_in_the_trained_model(mine, tmp_path, capsys):
    """What cannot be recognised leaves no folder."""
    out, listing = tmp_path / "out", f"{listings.__file__}:SelfAttentionV1"
    assert main(["try", f"{tmp_path}/mine.py:nn", "--out", str(out)]) == 2 and not out.exists()
    assert main(["try", listing, "--seconds", "0.01", "--out", str(out)]) == 0
    assert "Yours · SelfAttentionV1" in capsys.readouterr().out
    assert {"en-fr/yours-trained", "reverse/yours"} < {*attnviz.available(out)}
    mechanisms.remove("yours")
    mechanisms.remove("yours-trained")
    assert mechanisms.read(f"{out}/yours.py:YOURS").title == "Yours · SelfAttentionV1"
    assert mechanisms.find("yours-trained").title == "Yours, trained · SelfAttentionV1"


def test_the_models_learn_and_have_the_same_time(tmp_path):
    try:
        module = Attn("general", 32)
        module.unused = nn.Linear(2, 2)  # gets no gradient
        yours = own.wrap(module)
        scores, stopped = train.train_beside(yours, tmp_path, 3.0)
    finally:
        mechanisms.remove("yours")
    assert not stopped and [score.mechanism for score in scores] == ["yours", "bahdanau", "luong-general"]
    assert all(score.seconds >= 1 and score.loss < 3.26 for score in scores)  # 3.26: every letter as probable
    assert all(0 <= score.alignment_error <= 1 for score in scores)
    assert attnviz.load("reverse/bahdanau", tmp_path).card["scores"]["test"]["exact_match"] == scores[1].exact


def test_ctrl_c_keeps_what_was_trained(mine, tmp_path, capsys, monkeypatch):
    """Another one ends the test; before the training, one leaves the models of an earlier `try`, and so does
    a full disk."""
    advance = train.Learner.advance

    def interrupted(learner):
        if learner.batches == 2:
            raise KeyboardInterrupt
        return advance(learner)

    monkeypatch.setattr(train.Learner, "advance", interrupted)
    assert main(["try", mine, "--out", str(tmp_path / "out")]) == 0
    assert "Ctrl-C ended the training; what was trained is kept." in capsys.readouterr().out
    model = tmp_path / "out" / "reverse" / "yours" / "model.safetensors"
    before = model.read_bytes()

    def stops(*args):
        raise KeyboardInterrupt

    yours = mechanisms.find("yours")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(train, "Learner", stops)
        train.train_beside(yours, tmp_path / "out")
    assert model.read_bytes() == before
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):

        def full(*args):
            raise OSError("the disk is full")

        patch.setattr(train, "save", full)
        train.train_beside(yours, tmp_path / "out")
    assert model.read_bytes() == before and len(list((tmp_path / "out").iterdir())) == 3
    monkeypatch.setattr(train, "_score", stops)
    assert train.train_beside(yours, tmp_path / "out") == ([], True) and model.is_file()
    assert tryout._table([], True).endswith("Ctrl-C ended the test too; what was trained is kept, without scores.")


def test_what_cannot_be_tried_is_refused_in_a_sentence(mine, tmp_path, capsys):
    assert main(["try", mine, "--out", str(tmp_path)]) == 2
    assert "holds other files; choose another --out" in capsys.readouterr().err
    assert main(["try", mine, "--out", str(tmp_path / "a,b")]) == 2
    assert "--out must have no comma" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["try", mine, "--seconds", "-1"])
    assert "must be a number of seconds" in capsys.readouterr().err
    (tmp_path / "mine.py").write_text(
        ADDITIVE.replace("return torch", "assert not self.training\n        return torch")
    )
    assert main(["try", mine, "--seconds", "1", "--out", str(tmp_path / "out")]) == 2
    assert "Yours · Attention cannot be trained: " in capsys.readouterr().err
