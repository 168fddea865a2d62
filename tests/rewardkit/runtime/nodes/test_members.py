"""Nodes as the driver knows them: who is asked, refused, let be, and asked again."""

from __future__ import annotations

from rewardkit.runtime.nodes.members import HELLO_S, REST_S, Members, MemberState


def test_a_node_is_asked_once() -> None:
    members = Members()
    assert ["a"] == [one.node for one in members.seen({"a": "machine-a"}, 0.0)]
    assert [] == members.seen({"a": "machine-a"}, 1.0)
    assert ["b"] == [one.node for one in members.seen({"a": "machine-a", "b": "machine-b"}, 2.0)]


def test_a_lost_node_is_asked_again_after_a_rest_and_a_refused_one_never() -> None:
    members = Members()
    lost, refused = members.seen({"a": "machine-a", "b": "machine-b"}, 0.0)
    members.rest(lost, 10.0)
    members.refuse(refused)
    nodes = {"a": "machine-a", "b": "machine-b"}
    assert [] == members.seen(nodes, 10.0 + REST_S - 1)
    assert ["a"] == [one.node for one in members.seen(nodes, 10.0 + REST_S)]


def test_what_a_node_says_after_it_was_given_up_is_of_no_interest() -> None:
    members = Members()
    (first,) = members.seen({"a": "machine-a"}, 0.0)
    assert members.is_current(first)
    members.rest(first, 0.0)
    assert not members.is_current(first)
    (second,) = members.seen({"a": "machine-a"}, REST_S)
    assert members.is_current(second)
    assert not members.is_current(first)


def test_a_node_that_never_begins_is_late() -> None:
    members = Members()
    (one,) = members.seen({"a": "machine-a"}, 0.0)
    assert [] == members.late(HELLO_S)
    assert [one] == members.late(HELLO_S + 1)
    members.load(one, 500.0)
    assert [] == members.late(499.0)
    assert [one] == members.late(501.0)
    members.enter(one)
    assert [] == members.late(10**6)
    assert MemberState.IN is one.state


def test_a_node_that_is_gone_is_forgotten() -> None:
    members = Members()
    (one,) = members.seen({"a": "machine-a"}, 0.0)
    members.refuse(one)
    members.seen({}, 1.0)
    assert ["a"] == [again.node for again in members.seen({"a": "machine-a"}, 2.0)]
