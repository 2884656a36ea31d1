"""Strong components of a directed graph and what each node reaches, for graphs of ten thousand nodes.

Nodes are 0, 1, … and `following[n]` lists where n leads; sets of nodes are the bits of an integer. No recursion:
a chain of steps may be as long as the file allows.
"""

from __future__ import annotations


def strong_components(following: list[list[int]]) -> list[list[int]]:
    """The strong components, each after all that it leads to (Tarjan 1972)."""
    count = len(following)
    number, low = [-1] * count, [0] * count
    on_stack = [False] * count
    stack: list[int] = []
    found: list[list[int]] = []
    next_number = 0
    for root in range(count):
        if number[root] >= 0:
            continue
        path = [(root, 0)]
        while path:
            node, done = path.pop()
            if done == 0:
                number[node] = low[node] = next_number
                next_number += 1
                stack.append(node)
                on_stack[node] = True
            for at in range(done, len(following[node])):
                below = following[node][at]
                if number[below] < 0:
                    path += [(node, at + 1), (below, 0)]
                    break
                if on_stack[below]:
                    low[node] = min(low[node], number[below])
            else:
                if low[node] == number[node]:
                    found.append(_popped(stack, on_stack, node))
                if path:
                    parent = path[-1][0]
                    low[parent] = min(low[parent], low[node])
    return found


def _popped(stack: list[int], on_stack: list[bool], last: int) -> list[int]:
    members: list[int] = []
    while True:
        node = stack.pop()
        on_stack[node] = False
        members.append(node)
        if node == last:
            return members


def reached(following: list[list[int]]) -> list[int]:
    """For each node the bits of all nodes that a walk of one or more steps leads to."""
    bits = [0] * len(following)
    for members in strong_components(following):
        own = sum(1 << node for node in members)
        inside = len(members) > 1 or members[0] in following[members[0]]
        reach = own if inside else 0
        for node in members:
            for below in following[node]:
                if not own >> below & 1:
                    reach |= bits[below] | (1 << below)
        for node in members:
            bits[node] = reach
    return bits
