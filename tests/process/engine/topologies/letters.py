"""Sentences, their words, the words' letters, a count: one tree a sentence, of one to ten thousand edges.

Twice: with the engine's anchors and acks, and with explicit ones, where one ack is forgotten once.
"""

from __future__ import annotations

from collections import Counter

from leaving import LeavingBolt, LeavingSpout

from ardea import Grouping, Topology

SENTENCES = [
    "a",
    "the quick brown fox jumps over the lazy dog",
    " ".join(["ab"] * 1000),
    " ".join(["nine"] * 2000),  # 1 + 2,000 words + 8,000 letters
    "forgotten",
    "the end",
]


class Sentences(LeavingSpout):
    """Leaves how often each sentence was acked and how often it came back."""

    outputs = ["sentence"]

    def begin(self):
        self.left = list(enumerate(SENTENCES))
        self.acked = Counter()
        self.failed = Counter()

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        number, sentence = self.left.pop(0)
        self.emit([sentence], tup_id=number)

    def ack(self, tup_id):
        self.acked[tup_id] += 1

    def fail(self, tup_id):
        self.failed[tup_id] += 1
        self.left.append((tup_id, SENTENCES[tup_id]))
        return True

    def close(self):
        self.leave({"acked": self.acked, "failed": self.failed})


class SplitSentence(LeavingBolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup["sentence"].split():
            self.emit([word])


class SplitWord(LeavingBolt):
    outputs = ["letter"]

    def process(self, tup):
        for letter in tup["word"]:
            self.emit([letter])


class CountLetters(LeavingBolt):
    def begin(self):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["letter"]] += 1

    def end_of_input(self):
        self.leave(self.counts)


class SplitSentenceExplicitly(LeavingBolt):
    """As in Storm: emit(tuple, values), ack(tuple); once it forgets the latter."""

    outputs = ["word"]
    auto_anchor = auto_ack = False

    def begin(self):
        self.forgotten = False

    def process(self, tup):
        for word in tup["sentence"].split():
            self.emit([word], anchors=[tup])
        if tup["sentence"] == "forgotten" and not self.forgotten:
            self.forgotten = True
        else:
            self.ack(tup)


class SplitWordExplicitly(LeavingBolt):
    outputs = ["letter"]
    auto_anchor = auto_ack = False

    def process(self, tup):
        for letter in tup["word"]:
            self.emit([letter], anchors=[tup])
        self.ack(tup)


class Letters(Topology):
    sentences = Sentences.spec()
    words = SplitSentence.spec(inputs=[sentences])
    letters = SplitWord.spec(inputs=[words], par=2)
    counts = CountLetters.spec(inputs={letters: Grouping.fields("letter")}, par=2)

    sentences_by_hand = Sentences.spec()
    words_by_hand = SplitSentenceExplicitly.spec(inputs=[sentences_by_hand])
    letters_by_hand = SplitWordExplicitly.spec(inputs=[words_by_hand], par=2)
    counts_by_hand = CountLetters.spec(inputs={letters_by_hand: Grouping.fields("letter")}, par=2)

    config = {"topology.stmgrs": 2, "topology.message.timeout.secs": 5}
