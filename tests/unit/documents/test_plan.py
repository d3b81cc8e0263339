"""What a plan says of components."""

from __future__ import annotations

from pathlib import Path

from ardea.documents.plan import of_plan
from ardea.scheduler.submission import Submission

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_function_of_drpc_is_known_by_the_component_that_serves_it():
    """Also where the author's code is not loaded."""
    made = Submission.of(str(EXAMPLES / "trident_word_count.py"), {}, "/nowhere")
    told = of_plan(made.definition.shape.plan())
    assert {each.component: each.functions for each in told.components if each.functions} == {
        "spout-counts0": ["counts"]
    }
