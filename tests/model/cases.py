"""The cases that CI checks: bounds of the good models, and every defect.

`least` is about nine tenths of the states of the search: a model that lost an
action by mistake is smaller, and has no errors either. `how` is for the search
of a defect: depth first in the other order finds some of them sooner by far.
"""


def good(model, *knobs, least):
    return {"model": model, "knobs": list(knobs), "bad": False, "least": least, "how": []}


def deep(case):
    """A search that goes far down before it comes back."""
    return {**case, "depth": 2000000}


def defect(model, *knobs, how=()):
    return {"model": model, "knobs": list(knobs), "bad": True, "least": 0, "how": list(how)}


# See a defect become a disagreement, not only an assertion on the way there.
AGREEMENT = ["AGREEONLY", "NOSTUCK"]

CORE = [
    good("onepaxos", "S=1", "E=3", least=2300000),
    good("onepaxos", "S=1", "E=4", "RPC", "NOLEARN", "NOACCEPTED", least=1900000),
    good("onepaxos", "S=1", "E=3", "PARTS", "SEAL_RPC", "NOLEARN", "NOACCEPTED", least=460000),
    good("onepaxos", "S=1", "E=3", "RPC", "NOLEARN", "ANY_EPOCH", least=200000),
    good("onepaxos", "S=1", "E=3", "RPC", "NOLEARN", "TELL_NEWEST", least=220000),
    defect("onepaxos", "S=1", "E=3", "BUG_NO_ADOPT", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "BUG_NO_PROMISE", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "BUG_NO_HANDOFF", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "BUG_NO_FREEZE", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "BUG_UNADOPTED", *AGREEMENT),
    defect("onepaxos", "S=1", "E=4", "RPC", "NOLEARN", "NOACCEPTED", "BUG_NO_UL", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "BUG_AMNESIA", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "RPC", "NOLEARN", "NOACCEPTED", "BUG_OLD_SEAL", *AGREEMENT),
    defect("onepaxos", "S=1", "E=3", "BUG_NO_SEAL"),
    defect("onepaxos", "S=1", "E=4", "RPC", "NOLEARN", "NOACCEPTED", "BUG_STAGE_LOST"),
    defect("onepaxos", "S=1", "E=3", "BUG_EARLY_ACCEPTED"),
    defect("onepaxos", "S=1", "E=4", "RPC", "NOLEARN", "NOSTUCK", "ANY_EPOCH", "TELL_NEWEST"),
    defect("onepaxos", "S=1", "E=4", "NOLEARN", "NOACCEPTED", "BUG_LATE_STAGE"),
    defect("onepaxos", "S=1", "E=3", "PARTS", "SEAL_RPC", "NOLEARN", "NOACCEPTED", "BUG_STAGE_MIX"),
    defect("onepaxos", "S=1", "E=3", "PARTS", "RESTAGE", "SEAL_RPC", "NOLEARN", "NOACCEPTED",
           "BUG_STAGE_AGAIN", how=["-DREVERSE"]),  # 30 000 states; else millions
]

UTILITY = [
    good("utility", "R0=2", "R1=1", least=230000),
    good("utility", "R0=2", "R1=1", "CRASH", least=920000),
    defect("utility", "R0=2", "R1=1", "BUG_U_SILENT"),
    defect("utility", "R0=2", "R1=1", "BUG_U_COUNT"),
    defect("utility", "R0=1", "R1=1", "CRASH", "BUG_U_AMNESIA"),
    good("utility_record", least=1100000),
    defect("utility_record", "BUG_RECORD_VOTE_ONLY"),
    defect("utility_record", "BUG_RECORD_VOID"),
    defect("utility_record", "BUG_U_AMNESIA"),
]

MEMBERS = [
    good("members", "I=2", least=2000000),
    good("members", "V0=1", "RESTARTS=2", least=100000),
    good("members", "N=4", "V0=7", "I=1", least=280000),
    defect("members", "N=4", "V0=15", "I=1", "BUG_U_PROPOSERS"),
    defect("members", "N=4", "V0=7", "I=1", "BUG_U_OWN_ENTRY"),
    defect("members", "BUG_U_DIFFERENCE"),
    defect("members", "V0=1", "BUG_U_ALONE"),
]

READS = [
    good("read_index", least=900000),
    good("read_index", "S=3", least=3000000),
    defect("read_index", "BUG_ALONE"),
    defect("read_index", "BUG_FROZEN"),
    defect("read_index", "BUG_ANY_EPOCH"),
    defect("read_index", "BUG_ACTIVE"),
    good("reads", "RULE=1", least=3300000),
    good("reads", "RULE=2", least=1700000),
    good("reads", "RULE=4", "SESS", least=320000),
    defect("reads", "RULE=3"),
    defect("reads", "RULE=4"),
]

# What is split or left out: see the head of memacceptor.pml.
DIRECT = ["DIRECT", "NOLEARN"]
WHOLE = ["AREAD", "NOPUB", "EMAP", "NODROP"]
SPLIT = ["EMAP", "NODROP", "NOPUB"]
DEAD = ["S=2", "R=1", "E=3", "MAXCRASH=2", "NO=5"]
TWICE = ["S=2", "R=1", "E=3", "MAXCRASH=1", "NO=4"]
ONCE = ["S=2", "R=1", "E=2", "MAXCRASH=1", "NO=4"]

MEMORY = [
    good("memacceptor", "S=2", "R=1", "E=2", "MAXCRASH=2", "NO=4", *DIRECT, "EMAP", "NODROP",
         least=1400000),
    good("memacceptor", "S=2", "R=1", "E=3", "MAXCRASH=1", "NO=3", *DIRECT, *WHOLE, least=460000),
    good("memacceptor", "S=3", "R=2", "E=2", "MAXCRASH=2", "NO=4", *DIRECT, *WHOLE, least=440000),
    good("memacceptor", "S=2", "R=1", "E=2", "MAXCRASH=2", "NO=4", "NOLEARN", *WHOLE,
         least=490000),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_NO_EPOCH"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_RING_LATE"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_READ_EARLY"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_DROP_EARLY"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_FALSE_SYNC"),
    defect("memacceptor", *TWICE, *DIRECT, *SPLIT, "BUG_COPY_RAW"),
    defect("memacceptor", *TWICE, *DIRECT, *SPLIT, "BUG_LO_FALLS"),
    defect("memacceptor", *TWICE, *DIRECT, *SPLIT, "BUG_COPY_LO"),
    defect("memacceptor", *ONCE, *DIRECT, *SPLIT, "BUG_LO_LATE"),
    defect("memacceptor", *ONCE, *DIRECT, *SPLIT, "BUG_NO_VALIDATE"),
    defect("memacceptor", *TWICE, "NOLEARN", *WHOLE, "BUG_NO_CHECK"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_OWN_DROP"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_OUT_OF_SYNC"),
    defect("memacceptor", "S=2", "R=1", "E=2", "MAXCRASH=2", "NO=4", *DIRECT, "AREAD", "NOPUB",
           "BUG_UNMAPPED"),
    defect("memacceptor", *ONCE, "DIRECT", *WHOLE, "BUG_LEARN_EARLY"),
    defect("memacceptor", *ONCE, *DIRECT, "AREAD", "EMAP", "NODROP", "BUG_EXPOSE_FIRST"),
    defect("memacceptor", *DEAD, *DIRECT, *WHOLE, "BUG_NO_SKIP"),
]

# Joins in a smaller ring, and of one of the two: else it takes minutes.
SMALL = ["R=3", "IDLE=2", "BIG=1"]

GATE = [
    deep(good("gate", "NOJOIN", least=2400000)),
    deep(good("gate", "ONE", *SMALL, least=1480000)),
    deep(good("gate", "NOJOIN", *SMALL, "MIN=1", least=500000)),
    deep(good("gate", "NOJOIN", *SMALL, "MIN=1", "SLOW", least=620000)),
    deep(good("gate", "ONE", *SMALL, "MIN=1", "SLOW", least=840000)),
    defect("gate", "NOJOIN", *SMALL, "MIN=1", "SLOW", "BUG_SLOW_MIN"),
    defect("gate", "BUG_NOT_LOOKED"),
    defect("gate", "BUG_MARK_GROWS"),
    defect("gate", "BUG_MARK_FOLLOWS"),
    defect("gate", "BUG_OVERWRITE"),
    defect("gate", "BUG_OVERWRITE_HOLD"),
    defect("gate", "BUG_HOLD_STAYS"),
    defect("gate", "BUG_RETURN_LATE"),
    defect("gate", "BUG_AT_ONCE"),
    defect("gate", "BUG_RING_NOT_COUNTED"),
    defect("gate", "BUG_NEW_LEADER"),
    defect("gate", "MIN=1", "BUG_MIN_IGNORED"),
]

CASES = CORE + UTILITY + MEMBERS + READS + MEMORY + GATE
