"""What a quiet second costs a manager, in operations of the interpreter, among sixteen and among sixty-four."""

from __future__ import annotations

import sys

from tests.unit.stream_manager.mesh import Mesh

MOST = 5.0
"""Times the operations, for four times the containers."""


def operations_of_a_second(mesh):
    """Of the first manager: its own heartbeats, and what comes from all others."""
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return count

    mesh.now += 1.0
    for manager in list(mesh.managers.values())[1:]:
        manager.tick(mesh.now)
    coming = [each for each in mesh.mail if each[1] == 1]
    sys.settrace(count)
    try:
        mesh.managers[1].tick(mesh.now)
        for each in coming:
            mesh.pass_on(*each)
    finally:
        sys.settrace(None)
    return counted


def test_a_quiet_second_grows_with_the_containers_and_no_faster():
    few, many = (operations_of_a_second(Mesh(containers)) for containers in (16, 64))
    assert many / few <= MOST, (few, many)
