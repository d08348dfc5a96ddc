"""A training that lets one look on: what is seen, and that looking, pausing and racing change nothing of it."""

import io
import json
import os
import signal
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz import figures, mechanisms, own, select, training
from attnviz.data import tasks
from attnviz.training import apart, seen
from attnviz.training.apart import DONE, ENDED, GO, ONE, PAUSE, PAUSED, RUNNING, STOP, Apart
from attnviz.training.race import Held, Race, Rhythm
from attnviz.training.seen import AT_ONCE, MOST_PAIRS, PAD, Moment, Ring, Seen, Settings, heading, turning_points

SMALL = Settings(width=16)
RANDOM = replace(SMALL, dropout=0.3, teacher_forcing=0.5)  # which draw random numbers in training


def numbers(moments, mechanism):
    """Everything that was seen of a mechanism, apart from its time."""
    return [
        (m.batch, row.loss, row.exact, row.entropy, row.alignment_error, *(map_.tobytes() for map_ in row.maps))
        for m in moments
        for row in [m.of[mechanism]]
    ]


def test_pause_company_and_looking_change_nothing():
    names = ["transformer", "luong-general"]
    whole = [*training.watch("reverse", names, RANDOM, batches=6, every=2)]
    assert [moment.batch for moment in whole] == [0, 2, 4, 6]
    paused = []
    for moment in training.watch("reverse", names, RANDOM, batches=6, every=2):
        torch.rand(7)  # what others do meanwhile
        torch.manual_seed(5)
        paused.append(moment)
    seldom = [*training.watch("reverse", names[1:], RANDOM, batches=6, every=6)]
    for name in names:
        assert numbers(whole, name) == numbers(paused, name)
    assert numbers(whole[::3], names[1]) == numbers(seldom, names[1])
    other = [*training.watch("reverse", names[1:], replace(RANDOM, seed=2), batches=6, every=6)]
    assert numbers(other, names[1]) != numbers(seldom, names[1])


def test_the_random_numbers_of_others_stay_as_they_are():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    [*training.watch("copy", ["bahdanau"], RANDOM, batches=2, every=1)]
    assert torch.equal(before, torch.get_rng_state())


def test_all_read_the_same_batches_in_the_same_order():
    race, read = Race("reverse", ["bahdanau", "transformer"], SMALL), {}
    for learner in race.learners:
        update, own_batches = learner.trainer.update, read.setdefault(learner.name, [])
        learner.trainer.update = lambda indices, update=update, seen=own_batches: (
            seen.append(indices) or update(indices)
        )
    for _ in range(3):
        race.advance()
    first, second = read.values()
    assert first == second and len(first) == 3 and first[0] != first[1]
    same = [learner.trainer.batches.pairs for learner in race.learners]
    assert same[0] == same[1] and all(3 <= len(source.split()) <= 10 for source, _ in same[0])


def test_the_alignment_appears_and_the_loss_falls():
    moments = [*training.watch("reverse", ["luong-general"], batches=70, every=10)]
    first, last = (moments[place].of["luong-general"] for place in (0, -1))
    assert first.alignment_error > 0.6 and last.alignment_error < 0.3 and last.loss < first.loss / 2
    assert last.entropy < first.entropy and 0 < last.seconds == moments[-1].seconds
    aligned, fell = turning_points(moments, "luong-general")
    assert 0 < aligned <= 70 and 0 < fell <= 70
    trace = moments[-1].trace("luong-general", 2)
    assert [token.text for token in trace.source] == [*"motor", "<eos>"] and trace.source[-1].special
    looks = trace.map("cross").weights[0].argmax(-1)
    assert np.mean(looks[:5] == np.arange(4, -1, -1)) >= 0.6  # the anti-diagonal
    assert "looks at" in figures.heatmap(select.select(trace)).description


def test_a_decoder_that_sees_what_comes_copies_it_and_cannot_write():
    settings = Settings(**seen.PRESETS["future"].settings)
    *_, last = training.watch("reverse", ["transformer"], settings, batches=300, every=300)
    assert last.of["transformer"].loss < 0.3 and last.of["transformer"].exact == 0


def test_fillers_that_are_not_masked_take_weight_in_use_and_nothing_of_the_training_changes():
    races = [
        Race("reverse", ["luong-general", "transformer"], replace(SMALL, masked=masked)) for masked in (True, False)
    ]
    for race in races:
        race.advance()
    masked, open_ = (race.look() for race in races)
    assert [learner.loss for learner in races[0].learners] == [learner.loss for learner in races[1].learners]
    assert PAD not in masked.sequences[0][0] and masked.sequences[0][1] == open_.sequences[0][1]
    for name in masked.of:
        before, after = masked.of[name].maps[0], open_.of[name].maps[0]
        fillers = open_.sequences[0][0].count(PAD)
        assert fillers > 0 and after.shape[-1] == before.shape[-1] + fillers
        assert np.allclose(after.sum(-1), 1, atol=1e-5) and (after[..., -fillers:].sum(-1) > 0.01).all()
        assert select.select(open_.trace(name)).keys[-1].special
    assert heading([open_]) == heading([masked])


def test_the_error_of_the_best_head_by_hand():
    race = Race("sort", ["bahdanau"], SMALL)
    held = Held([("b a b", "a b b"), ("a", "a")], race.tokenizer, tasks.SORT)
    head = torch.zeros(2, 1, 4, 4)  # (N, H, T, S): a -> place 1; both b -> 0 or 2; a of the second -> 0
    head[0, 0, [0, 1, 2, 3], [1, 0, 0, 3]] = 1
    head[1, 0, 0, 0] = 1
    assert held.alignment_error([head]) == 0
    worse = head.clone()
    worse[0, 0, 1] = torch.tensor([0, 1.0, 0, 0])
    worse[1, 0, 0] = torch.tensor([0.1, 0.2, 0, 0])
    assert held.alignment_error([worse]) == pytest.approx(0.5) and held.alignment_error([worse, head]) == 0
    assert held.alignment_error([torch.cat([worse, head], dim=1)]) == 0 and held.alignment_error([]) is None


def test_own_pairs_and_an_own_module_are_trained_kept_and_opened(tmp_path):
    pairs = [(f"{a} {b}", f"{b} {a}") for a in "ab cde fgh ij".split() for b in "kl mno pqr st".split()]
    try:
        race = Race(pairs, [own.wrap(Attn(16)), "fixed-context"], SMALL)
        for _ in range(2):
            race.advance()
        moment = race.look()
        assert race.learners[0].trainer.optimizer.total >= 1_000_000  # few pairs do not end the run
        assert moment.batch == 2 and moment.of["yours"].alignment_error is None
        assert moment.of["fixed-context"].entropy is None and not moment.of["fixed-context"].maps
        with pytest.raises(ValueError, match="has no attention to show"):
            moment.trace("fixed-context")
        assert race.save(tmp_path, "my-pairs") == ["my-pairs/yours", "my-pairs/fixed-context"]
    finally:
        mechanisms.remove("yours")
    assert attnviz.load("my-pairs/fixed-context", tmp_path).trace("ab kl").source[0].text == "ab"


class Attn(nn.Module):
    """Additive attention, as tutorials have it."""

    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(2 * width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, query, keys):
        scores = self.score(torch.tanh(self.query(query).unsqueeze(1) + self.key(keys))).squeeze(-1)
        return torch.softmax(scores, dim=-1)


def test_a_mechanism_may_ask_at_the_other_time():
    race = Race("reverse", ["bahdanau", "luong-general", "transformer"], replace(SMALL, asks="after"))
    try:
        assert [learner.name for learner in race.learners] == ["bahdanau-after", "luong-general", "transformer"]
        assert type(race.learners[0].trainer.optimizer.master).__name__ == "Luong"
        assert race.look().of["bahdanau-after"].maps
    finally:
        mechanisms.remove("bahdanau-after")


def test_a_ring_spans_the_run_and_is_bounded():
    ring = Ring(8)
    for batch in range(100):
        ring.add(Moment(batch, 0.0, {}, ()))
        batches = [moment.batch for moment in ring.moments]
        assert len(batches) <= 8 and batches[0] == 0 and batches[-1] == batch and batches == sorted(set(batches))
    gaps = np.diff([moment.batch for moment in ring.moments][:-1])
    assert len(set(gaps.tolist())) == 1 and len(batches) >= 4  # evenly, from the first to the last


def test_a_ring_of_large_maps_is_bounded_in_bytes():
    ring = Ring(size=10_000)
    for batch in range(50):
        maps = (np.zeros((1, 1, 20, 25), np.float32),)  # 2,000 bytes
        ring.add(Moment(batch, 0.0, {"a": Seen(1, 0, 1, 1, maps, 0)}, ()))
        batches = [moment.batch for moment in ring.moments]
        assert len(batches) <= 5 and batches[0] == 0 and batches[-1] == batch
    assert len(batches) >= 3


def test_looks_come_twice_a_second_if_they_take_a_small_share_of_the_time(monkeypatch):
    race = Race("reverse", ["luong-dot"], SMALL)
    rhythm, learner = Rhythm(race), race.learners[0]
    for took, pause in ((0.28, 0.22), (0.04, 0.46), (0.28, 2.0)):  # the first may be slow
        clock = iter((0.0, took))
        monkeypatch.setattr(time, "process_time", lambda clock=clock: next(clock))
        monkeypatch.setattr(race, "look", lambda: None)
        rhythm.look()
        assert not rhythm.due()
        begun = learner.seconds
        while not rhythm.due():
            learner.batches, learner.seconds = learner.batches + 1, learner.seconds + 0.09
        assert abs(learner.seconds - begun - pause) <= 0.046
    monkeypatch.undo()
    assert not Rhythm(race, every=3).due() or race.batch % 3 == 0


def test_moments_for_a_browser_are_what_grids_has(monkeypatch):
    moments = list(training.watch("reverse", ["luong-dot", "fixed-context", "transformer"], SMALL, batches=4, every=2))
    head, maps = unpacked(seen.packed(moments, 0, state="running"))
    assert head["state"] == "running" and head["batches"] == [0, 2, 4] and head["points"] == [[None, None]] * 3
    assert [moment["batch"] for moment in head["moments"]] == [2, 4]
    of = moments[-1].of["transformer"]
    assert head["moments"][-1]["rows"][2] == [of.loss, of.exact, of.entropy, of.alignment_error]
    assert head["moments"][-1]["rows"][1][2:] == [None, None] and head["moments"][-1]["has"] == 2
    grids = [g for m in moments[1:] for i in range(3) for (g,) in seen.grids([m], i).values()]
    wanted = np.concatenate([grid.masked.ravel() for grid in grids])
    assert [[*grid.weights.shape] for grid in grids[:6:2]] == head["moments"][0]["sides"]
    assert np.abs(maps / 254 - wanted).max() <= 0.5 / 254 + 1e-6
    monkeypatch.setattr(seen, "PACKED", 10)
    assert [moment["batch"] for moment in unpacked(seen.packed(moments))[0]["moments"]] == [0]


def unpacked(content):
    """The JSON and the bytes of the maps."""
    size = int.from_bytes(content[:4], "little")
    return json.loads(content[4 : 4 + size]), np.frombuffer(content[4 + size :], np.uint8)


def test_turning_points_by_hand():
    rows = [(0, 4.0, 0.9), (5, 2.5, 0.4), (10, 1.9, 0.29), (15, 0.1, 0.0)]
    moments = [Moment(b, 0.0, {"a": Seen(loss, 0, 1, error, (), 0)}, ()) for b, loss, error in rows]
    assert turning_points(moments, "a") == (10, 10) and turning_points(moments[:2], "a") == (None, None)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: training.watch("rewind", ["bahdanau"]), "task must be one of reverse, copy, sort, shift, "),
        (lambda: training.watch(tasks.TASKS["en-fr"], ["bahdanau"]), "a task must have an answer"),
        (lambda: training.watch("reverse", "bahdanau"), f"mechanisms must be a list of 1 to {AT_ONCE}"),
        (lambda: training.watch("reverse", []), "mechanisms must be a list of 1 to 3; got []"),
        (lambda: training.watch("reverse", ["self-attention"]), "does not write an output from a source"),
        (lambda: training.watch("reverse", ["bahdanow"]), "unknown mechanism 'bahdanow'"),
        (lambda: training.watch("reverse", ["bahdanau"], every=0), "must be positive"),
        (lambda: training.watch([("a", "b")] * (MOST_PAIRS + 1), ["bahdanau"]), "at most 5,000 pairs"),
        (lambda: training.watch([("a", "b")], ["bahdanau"]), "validation and training need"),
        (lambda: training.watch(["a b"], ["bahdanau"]), "a list of pairs of texts"),
        (lambda: training.watch([(1, 2)] * 9, ["bahdanau"]), "a list of pairs of texts"),
        (lambda: Settings(width=7), "width must be a whole number from 8 to 512; got 7"),
        (lambda: Settings(width=16, heads=3), "width must be a multiple of heads"),
        (lambda: Settings(learning_rate=float("nan")), "learning_rate must be from 1e-06 to 10; got nan"),
        (lambda: Settings(teacher_forcing=1.5), "teacher_forcing must be from 0 to 1; got 1.5"),
        (lambda: Settings(asks="never"), "asks must be before, after or empty"),
    ],
)
def test_what_cannot_be_watched_is_refused_in_a_sentence(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    assert words in str(caught.value)


# --- in a process of its own

PATIENCE = 120  # s on a busy machine


def until(training, reached):
    """Look, as a page does, until it is so."""
    end = time.monotonic() + PATIENCE
    while not reached(training.moments):
        assert time.monotonic() < end, (training.state, training.problem)
        time.sleep(0.05)


def newest_at_rest(training):
    """The newest batch, once a second has brought no other: on a busy machine it goes on for a while."""
    before = None
    while before != (newest := training.moments[-1].batch):
        before = newest
        time.sleep(1)
    return newest


@pytest.fixture
def started():
    running = []

    def start(*arguments, **named):
        running.append(Apart(*arguments, **named))
        return running[-1]

    yield start
    for race in running:
        race.process.kill()
        race.process.wait()


def test_it_is_the_training_without_a_process_and_one_batch_is_one(started):
    race = started("reverse", ["luong-dot"], SMALL)
    until(race, lambda moments: moments)
    race.tell(PAUSE)
    assert race.state == PAUSED
    at = newest_at_rest(race)
    for count in (1, 2):
        race.tell(ONE)
        until(race, lambda moments, count=count: moments[-1].batch >= at + count)
    single = race.moments[-1].batch
    time.sleep(0.3)
    assert race.moments[-1].batch == single  # it waits
    race.tell(GO)
    until(race, lambda moments: moments[-1].batch > single + 1)
    assert race.state == RUNNING
    race.tell(STOP)
    assert race.process.wait(PATIENCE) and race.state == ENDED and not race.problem
    until_single = [moment for moment in race.moments if moment.batch <= single]
    here = {m.batch: m for m in training.watch("reverse", ["luong-dot"], SMALL, batches=single, every=1)}
    assert numbers(until_single, "luong-dot") == numbers([here[moment.batch] for moment in until_single], "luong-dot")


def test_it_trains_no_longer_than_it_may_and_its_models_can_be_kept(started, tmp_path):
    race = started("reverse", ["luong-dot"], SMALL, longest=0.2)
    until(race, lambda moments: race.state == DONE)
    assert race.moments[-1].seconds >= 0.2 and "has ended after 0.2 seconds of computing" in race.problem
    with zipfile.ZipFile(io.BytesIO(race.models())) as archive:
        archive.extractall(tmp_path)
    assert attnviz.available(tmp_path) == ["reverse/luong-dot"]
    trace = attnviz.load("reverse/luong-dot", tmp_path).trace("m o t o r")
    assert [token.text for token in trace.source][:-1] == [*"motor"]
    race.tell(GO)
    assert race.state == DONE  # it goes on no more
    race.tell(STOP)
    assert race.process.wait(PATIENCE) is not None and race.state == ENDED
    with pytest.raises(ValueError, match="The models have ended with the training"):
        race.models()


def test_it_ends_where_nobody_looks(started):
    is_open = [True]  # as a tab in the background is
    race = started("reverse", ["luong-dot"], SMALL, unseen=0.5, is_open=lambda: is_open[0])
    time.sleep(3 * 0.5)
    assert race.process.poll() is None and race.state != ENDED
    is_open[0] = False
    assert race.process.wait(PATIENCE) is not None
    assert race.state == ENDED and "Nobody was looking" in race.problem


def test_a_killed_process_is_said_and_what_was_seen_stays(started):
    race = started("copy", ["luong-dot"], SMALL)
    until(race, lambda moments: moments)
    os.kill(race.process.pid, signal.SIGKILL)
    until(race, lambda moments: race.state == ENDED)
    assert race.problem == apart.KILLED and race.moments


def test_what_cannot_be_trained_is_said(started):
    race = started([("a", "b")], ["luong-dot"], SMALL)
    until(race, lambda moments: race.state == ENDED)
    assert "validation and training need at least one sentence pair each" in race.problem and not race.moments
