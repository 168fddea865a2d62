"""Nodes as the driver knows them: who is asked, refused, let be, and asked again."""

from __future__ import annotations

from rewardkit.runtime.nodes.members import HELLO_S, REST_S, Members, MemberState


def test_a_node_is_asked_once() -> None:
    members = Members()
    assert ["a"] == [member.node for member in members.observe({"a": "machine-a"}, 0.0)]
    assert [] == members.observe({"a": "machine-a"}, 1.0)
    assert ["b"] == [member.node for member in members.observe({"a": "machine-a", "b": "machine-b"}, 2.0)]


def test_a_lost_node_is_asked_again_after_a_rest_and_a_refused_one_never() -> None:
    members = Members()
    lost, refused = members.observe({"a": "machine-a", "b": "machine-b"}, 0.0)
    lost.rest(10.0)
    refused.move(MemberState.REFUSED)
    nodes = {"a": "machine-a", "b": "machine-b"}
    assert [] == members.observe(nodes, 10.0 + REST_S - 1)
    assert ["a"] == [member.node for member in members.observe(nodes, 10.0 + REST_S)]


def test_what_a_node_says_after_it_was_given_up_is_of_no_interest() -> None:
    members = Members()
    (first,) = members.observe({"a": "machine-a"}, 0.0)
    assert members.is_current(first)
    first.rest(0.0)
    assert not members.is_current(first)
    (second,) = members.observe({"a": "machine-a"}, REST_S)
    assert members.is_current(second)
    assert not members.is_current(first)


def test_a_node_that_never_begins_is_late() -> None:
    members = Members()
    (member,) = members.observe({"a": "machine-a"}, 0.0)
    assert [] == members.timeouts(HELLO_S)
    assert [member] == members.timeouts(HELLO_S + 1)
    member.move(MemberState.LOADING, 500.0)
    assert [] == members.timeouts(499.0)
    assert [member] == members.timeouts(501.0)
    member.move(MemberState.IN)
    assert [] == members.timeouts(10**6)
    assert MemberState.IN is member.state


def test_a_node_that_is_gone_is_forgotten() -> None:
    members = Members()
    (member,) = members.observe({"a": "machine-a"}, 0.0)
    member.move(MemberState.REFUSED)
    members.observe({}, 1.0)
    assert ["a"] == [again.node for again in members.observe({"a": "machine-a"}, 2.0)]
