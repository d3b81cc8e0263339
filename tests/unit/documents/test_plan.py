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


def test_a_grouping_of_the_authors_own_is_custom_where_its_object_is_not_known():
    made = Submission.of(str(EXAMPLES / "trident_word_count.py"), {}, "/nowhere").definition
    ways = {way for each in of_plan(made.shape.plan()).components for way in each.inputs.values()}
    assert ("custom" in ways, [way for way in ways if "NoneType" in way]) == (True, [])
