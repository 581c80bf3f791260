"""The published trees and predictions, compared with a second implementation.

This file builds every static tree and the adaptive tree again, directly from
the rules of core/topo/TREES.md and as simply as possible, and predicts the
costs of operations on them. `quoin tree` must give the same edges in the same
order, and the same costs within 0.1 cycle.

Usage: test_faithful.py PATH_OF_QUOIN FOLDER [MACHINE ...]
Without names all machines of the folder are taken, each from its first, a
middle and its last core, and a line is printed for each.
"""

import csv
import heapq
import io
import json
import pathlib
import subprocess
import sys

OPS = ("broadcast", "reduce", "barrier", "ack", "2pc")
STATICS = ("binary", "fibonacci", "sequential", "mst", "mst2", "cluster",
           "bad", "bad2")
GROUPED = ("cluster", "adaptive")
LEVELS = ("node", "cache", "socket")
WITHIN = 0.1  # cycles


class Machine:
    """Costs and groups, by the cores' own numbers."""

    def __init__(self, folder):
        with open(folder / "numa.csv", encoding="utf-8") as f:
            rows = {int(r["core"]): r for r in csv.DictReader(f)}
        self.cores = sorted(rows)
        self.group = {level: {c: rows[c][level] for c in self.cores}
                      for level in LEVELS}
        self.s, self.r = {}, {}
        with open(folder / "pairwise.csv", encoding="utf-8") as f:
            for row in csv.DictReader(f):
                pair = int(row["from"]), int(row["to"])
                self.s[pair] = float(row["send_cycles"])
                self.r[pair] = float(row["receive_cycles"])


class Tree:
    def __init__(self, root, edges):
        self.root = root
        self.parent = {c: p for p, c in edges}
        self.kids = {}
        for p, c in edges:
            self.kids.setdefault(p, []).append(c)

    def of(self, v):
        return self.kids.get(v, [])

    def copy(self):
        return Tree(self.root, self.edges())

    def edges(self):
        return [(p, c) for p in self.kids for c in self.kids[p]]

    def top_down(self):
        order = [self.root]
        for v in order:
            order.extend(self.of(v))
        return order


# Static trees.

def by_ranks(cores, kids):
    n = len(cores)
    return Tree(cores[0], [(cores[i], cores[k]) for i in range(n)
                           for k in kids(i) if k < n])


def fibonacci(cores):
    """The F-tree of the smallest order that is large enough; its nodes
    numbered by depth and preorder, the first ones kept."""
    nodes = []  # (depth, preorder, preorder of the parent, right)

    def grow(order, depth, parent, right):
        if order <= 0:
            return
        me = len(nodes)
        nodes.append((depth, me, parent, right))
        if order > 1:
            grow(order - 1, depth + 1, me, 0)
            grow(order - 2, depth + 1, me, 1)

    size, order = [0, 1], 1
    while size[order] < len(cores):
        order += 1
        size.append(1 + size[order - 1] + size[order - 2])
    grow(order, 0, None, 0)
    kept = sorted(nodes)[:len(cores)]
    core = {node[1]: cores[i] for i, node in enumerate(kept)}
    kept.sort(key=lambda node: node[3])  # left children before right ones
    return Tree(cores[0], [(core[node[2]], core[node[1]]) for node in kept
                           if node[2] is not None])


def prim(m, cores, sign, cap):
    inside, outside, edges = [cores[0]], sorted(cores[1:]), []
    have = {c: 0 for c in cores}
    while outside:
        best = None
        for u in inside:
            if have[u] == cap:
                continue
            for v in outside:
                w = sign * (m.s[u, v] + m.r[u, v])
                if best is None or w < best[0]:
                    best = w, u, v
        _, u, v = best
        have[u] += 1
        edges.append((u, v))
        inside.append(v)
        outside.remove(v)
    return Tree(cores[0], edges)


def cluster(m, cores, level):
    groups = {}
    for c in cores:
        groups.setdefault(m.group[level][c], []).append(c)
    groups, edges = list(groups.values()), []
    for i, members in enumerate(groups):
        for k in (2 * i + 1, 2 * i + 2):
            if k < len(groups):
                edges.append((members[0], groups[k][0]))
        edges += [(members[0], c) for c in members[1:]]
    return Tree(cores[0], edges)


def static(m, name, root, level):
    cores = [root] + [c for c in m.cores if c != root]
    if name == "binary":
        return by_ranks(cores, lambda i: (2 * i + 1, 2 * i + 2))
    if name == "sequential":
        return Tree(root, [(root, c) for c in cores[1:]])
    if name == "fibonacci":
        return fibonacci(cores)
    if name == "cluster":
        return cluster(m, cores, level)
    return prim(m, cores, 1 if name.startswith("mst") else -1,
                2 if name.endswith("2") else None)


# Predictions.

def broadcast(m, t):
    """When each core is informed, and when it has sent to all children."""
    at, idle = {t.root: 0.0}, {}
    for v in t.top_down():
        sent = at[v]
        for c in t.of(v):
            sent += m.s[v, c]
            at[c] = sent + m.r[v, c]
        idle[v] = sent
    return at, idle


def reduce(m, t, start, q):
    done = {}
    for v in reversed(t.top_down()):
        x = start[v]
        for seen, c in sorted((done[c] + m.s[c, v], c) for c in t.of(v)):
            x = x + q * m.r[c, v] if seen < x else seen + m.r[c, v]
        done[v] = x
    return done[t.root]


def predict(m, t, op, q):
    at, idle = broadcast(m, t)
    down = max(at.values())
    up = reduce(m, t, dict.fromkeys(m.cores, 0.0), q)
    acked = reduce(m, t, idle, q)
    return {"broadcast": down, "reduce": up, "barrier": up + down,
            "ack": acked, "2pc": acked + down}[op]


# The adaptive tree.

def base(m, root, level):
    node = m.group[level]
    reserved, active, edges = {root}, {node[root]}, []
    queue = [(0.0, root)]
    while queue:
        t, i = heapq.heappop(queue)
        free = [x for x in m.cores if x not in reserved and
                (node[x] == node[i] or node[x] not in active)]
        if not free:
            continue
        x = max(free, key=lambda x: (m.s[i, x] + m.r[i, x], -x))
        if node[x] != node[i]:
            x = min((y for y in m.cores
                     if y not in reserved and node[y] == node[x]),
                    key=lambda y: (m.s[i, y], y))
            active.add(node[x])
        reserved.add(x)
        edges.append((i, x))
        heapq.heappush(queue, (t + m.s[i, x], i))
        heapq.heappush(queue, (t + m.s[i, x] + m.r[i, x], x))
    return Tree(root, edges)


def latency(m, t):
    return max(broadcast(m, t)[0].values())


def reorder(m, tree, optimal):
    t, cost = tree.copy(), {}
    for v in reversed(t.top_down()):
        t.of(v).sort(key=lambda c: -(cost[c] + optimal * m.r[v, c]))
        sent, worst = 0.0, 0.0
        for c in t.of(v):
            sent += m.s[v, c]
            worst = max(worst, sent + m.r[v, c] + cost[c])
        cost[v] = worst
    return t if latency(m, t) <= latency(m, tree) else tree


def shuffle(m, t, optimal):
    def slow(t):
        at, _ = broadcast(m, t)
        most = max(at.values())
        late = [c for c in m.cores if at[c] == most]
        return (most, len(late)), late[0]

    t = reorder(m, t, optimal)
    for _ in range(4 * len(m.cores)):
        (worst, count), last = slow(t)
        _, idle = broadcast(m, t)
        to_ask = [u for u in m.cores if u not in (last, t.parent.get(last))]
        if not to_ask:
            break
        when, u = min((idle[u] + m.s[u, last] + m.r[u, last], u)
                      for u in to_ask)
        if when >= worst:
            break
        moved = t.copy()
        moved.of(t.parent[last]).remove(last)
        moved.kids.setdefault(u, []).append(last)
        moved.parent[last] = u
        moved = reorder(m, moved, optimal)
        if slow(moved)[0] >= (worst, count):
            break
        t = moved
    return t


def adaptive(m, root, level):
    b = base(m, root, level)
    a, c = shuffle(m, b, False), shuffle(m, b, True)
    return c if latency(m, c) < latency(m, a) else a


def default_root(m):
    return min(m.cores, key=lambda u: sum(m.s[u, v] for v in m.cores
                                          if v != u))


# The comparison.

def quoin(*args):
    done = subprocess.run([sys.argv[1], "tree", *map(str, args)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def same_root(folder, m):
    text = quoin("--machine", folder, "--algo", "adaptive", "--format", "csv")
    assert text.startswith(f"# root={default_root(m)}\n"), \
        f"{folder}: another root of its own"


def same_edges(folder, name, root, level, want):
    groups = ("--level", level) if name in GROUPED else ()
    text = quoin("--machine", folder, "--algo", name, "--root", root,
                 *groups, "--format", "csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == [f"# root={root}"], rows[0]
    got = {}
    for parent, child, order in rows[2:]:
        got.setdefault(int(parent), {})[int(order)] = int(child)
    got = {p: [kids[i] for i in sorted(kids)] for p, kids in got.items()}
    assert got == {p: kids for p, kids in want.kids.items() if kids}, \
        f"{folder} {name} root {root} level {level}: another tree"


def costs_differ(folder, m, op, q, root, trees):
    """The largest difference, in cycles."""
    got = json.loads(quoin("--machine", folder, "--op", op, "--queued", q,
                           "--root", root, "--format", "json", "--moves", 1))
    cycles = {c["name"]: c["cycles"] for c in got["compared"]}
    return max(abs(cycles[name] - predict(m, t, op, q))
               for name, t in trees.items())


def check(folder, roots):
    m = Machine(folder)
    chosen = [m.cores[i * (len(m.cores) - 1) // max(roots - 1, 1)]
               for i in range(roots)]
    same_root(folder, m)
    trees, costs, worst = 0, 0, 0.0
    for root in chosen:
        built = {}
        for level in LEVELS:
            for name in (*STATICS, "adaptive"):
                if level != "node" and name not in GROUPED:
                    continue
                t = adaptive(m, root, level) if name == "adaptive" else \
                    static(m, name, root, level)
                same_edges(folder, name, root, level, t)
                trees += 1
                if level == "node":
                    built[name] = t
        for op in OPS:
            for q in (1, 0.125) if op != "broadcast" else (1,):
                far = costs_differ(folder, m, op, q, root, built)
                assert far <= WITHIN, f"{folder} {op} q={q} root {root}: {far}"
                worst = max(worst, far)
                costs += len(built)
    print(f"{folder.name:24} {len(m.cores):4} cores, roots "
          f"{' '.join(map(str, chosen)):12} {trees} trees equal, {costs} "
          f"predictions within {worst:.4f} cycles", flush=True)


def main():
    folder, names = pathlib.Path(sys.argv[2]), sys.argv[3:]
    chosen = [folder / name for name in names] or \
        sorted(p for p in folder.iterdir() if (p / "pairwise.csv").exists())
    for path in chosen:
        check(path, 1 if names else 3)


if __name__ == "__main__":
    main()
