"""The tables of a record, and how a file of an older version becomes one of this version.

A record is one SQLite file. Texts lie in a table of their own, each distinct text once and compressed, so that what is
searched stays small. Which texts there are is told by ``digests``, one row for those that were added together: pairs of
a digest and a text's id, 16 bytes each. An index over digests would be written all over at every step. The scores of a
completion are packed in its row, in the order of its batch's versions; what a call said beside its number (reason,
metrics, error, output) has a row only where it said something. Sums of each batch and version are kept beside them, so
that no curve reads single scores, and so that a search for high or low scores knows which batches to open;
``batch.low`` and ``high`` are of its plain sums. The total of a completion, the weighted sum that the trainer uses, is
``completion.weighted``; ``completion.total`` is the plain sum: the file keeps that column's first name, so that records
of all releases read alike, and no reader hands it on under this name. A pass of rescoring keeps its scores apart from
those that the training saw: one row a completion, and ``said.pass`` is its number there, 0 for the training's own.
Numbers of batches and completions only grow, also after some were taken away; those of a batch's completions follow
each other. A change that a running training is asked for, the processes that train, and their votes on it have tables
of their own: :mod:`rewardkit.record.changes` says how they agree. Times are seconds since 1970. ``numbers`` repeats the
numbers of a batch's completions by column, for sorts and filters over the whole run, see
:mod:`rewardkit.record.number_blocks`; a batch of an older release has none there, and its rows are read instead.
"""

from __future__ import annotations

APPLICATION_ID = 0x726B7264  # `PRAGMA application_id` of every record: the letters `rkrd`
VERSION = 1  # `PRAGMA user_version`: the version of the tables

TABLES = """
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    rank INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    began REAL NOT NULL,
    seen REAL NOT NULL,
    ended REAL,
    about TEXT NOT NULL
);

CREATE TABLE text (id INTEGER PRIMARY KEY, body BLOB NOT NULL);

CREATE TABLE digests (id INTEGER PRIMARY KEY, pairs BLOB NOT NULL);

CREATE TABLE prompt (
    id INTEGER PRIMARY KEY,
    digest INTEGER NOT NULL UNIQUE,
    prompt INTEGER NOT NULL REFERENCES text,
    columns INTEGER NOT NULL REFERENCES text
);

CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    reward TEXT NOT NULL,
    digits TEXT NOT NULL,
    number INTEGER NOT NULL,
    origin TEXT NOT NULL,
    reference TEXT,
    source INTEGER REFERENCES text,
    module INTEGER REFERENCES text,
    settings TEXT NOT NULL,
    began REAL NOT NULL,
    first_step INTEGER,
    UNIQUE (reward, digits)
);

CREATE TABLE batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL REFERENCES session,
    step INTEGER,
    epoch REAL,
    split TEXT NOT NULL,
    scored REAL NOT NULL,
    versions TEXT NOT NULL,
    weights TEXT NOT NULL,
    left_out INTEGER NOT NULL,
    low REAL,
    high REAL
);
CREATE INDEX batch_step ON batch (split, step);

CREATE TABLE completion (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    batch INTEGER NOT NULL REFERENCES batch,
    epoch REAL,
    prompt INTEGER NOT NULL REFERENCES prompt,
    "group" INTEGER NOT NULL,
    completion INTEGER REFERENCES text,
    tokens INTEGER,
    truncated INTEGER,
    total REAL,
    weighted REAL,
    advantage REAL,
    status TEXT NOT NULL,
    scores BLOB NOT NULL,
    seconds BLOB NOT NULL
);
CREATE INDEX completion_batch ON completion (batch);
CREATE INDEX completion_prompt ON completion (prompt);

CREATE TABLE pass (
    id INTEGER PRIMARY KEY,
    version INTEGER NOT NULL REFERENCES version,
    began REAL NOT NULL,
    ended REAL,
    about TEXT NOT NULL
);

CREATE TABLE rescored (
    pass INTEGER NOT NULL REFERENCES pass,
    completion INTEGER NOT NULL REFERENCES completion,
    status TEXT NOT NULL,
    score REAL,
    seconds REAL NOT NULL,
    PRIMARY KEY (pass, completion)
) WITHOUT ROWID;

CREATE TABLE said (
    completion INTEGER NOT NULL REFERENCES completion,
    version INTEGER NOT NULL REFERENCES version,
    pass INTEGER NOT NULL,
    reason TEXT,
    metrics TEXT,
    cause TEXT,
    error TEXT,
    traceback INTEGER REFERENCES text,
    logs INTEGER REFERENCES text,
    attempts INTEGER NOT NULL,
    unanswered TEXT,
    PRIMARY KEY (completion, version, pass)
) WITHOUT ROWID;

CREATE TABLE summary (
    batch INTEGER NOT NULL REFERENCES batch,
    version INTEGER NOT NULL REFERENCES version,
    scored INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    causes TEXT NOT NULL,
    mean REAL,
    std REAL,
    min REAL,
    max REAL,
    p50_s REAL,
    p95_s REAL,
    groups INTEGER NOT NULL,
    flat_groups INTEGER NOT NULL,
    PRIMARY KEY (batch, version)
) WITHOUT ROWID;

CREATE TABLE metric (
    split TEXT NOT NULL,
    name TEXT NOT NULL,
    step INTEGER NOT NULL,
    value REAL,
    PRIMARY KEY (split, name, step)
) WITHOUT ROWID;

CREATE TABLE process (
    id INTEGER PRIMARY KEY,
    rank INTEGER NOT NULL,
    ranks INTEGER NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    born TEXT NOT NULL,
    began REAL NOT NULL,
    seen REAL NOT NULL,
    ended REAL,
    step INTEGER NOT NULL,
    actions TEXT NOT NULL,
    rewards TEXT NOT NULL
);

CREATE TABLE change (
    id INTEGER PRIMARY KEY,
    asked REAL NOT NULL,
    reward TEXT NOT NULL,
    action TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    step INTEGER,
    words TEXT
);

CREATE TABLE vote (
    change INTEGER NOT NULL REFERENCES change,
    process INTEGER NOT NULL REFERENCES process,
    words TEXT,
    PRIMARY KEY (change, process)
) WITHOUT ROWID;

CREATE TABLE event (id INTEGER PRIMARY KEY, time REAL NOT NULL, step INTEGER, kind TEXT NOT NULL, body TEXT NOT NULL);

CREATE TABLE numbers (batch INTEGER PRIMARY KEY REFERENCES batch, first INTEGER NOT NULL, body BLOB NOT NULL);
"""

LATER_TABLES = ("numbers",)
"""Tables that records of version 1 may lack; whoever opens one for writing adds them, and readers do without."""

MIGRATIONS: dict[int, str] = {}  # SQL that makes a file of one version a file of the next, by the version before
