-- The first form of the log. A file here that was ever released is never edited: the next change is the next file.
--
-- Times are milliseconds since 1970. "session" is a session's key here, "session_id" its id as everybody knows it.

-- What a session is. Seldom written. Keys are never used twice, so that what a removed session left behind can be
-- swept up later without touching a new one.
CREATE TABLE sessions (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    agent       TEXT NOT NULL,               -- claude, codex, gemini, builtin, acp:COMMAND
    folder      ANY,                         -- text, or bytes where the path is no text
    created     INTEGER NOT NULL,
    forked_from TEXT,                        -- the id of the session whose log it began as a copy of
    config      TEXT NOT NULL,               -- JSON: how it was started, no secrets
    title       TEXT,                        -- the first thing somebody said
    native_id   TEXT,                        -- the agent's own id of the conversation
    model       TEXT
) STRICT;
CREATE INDEX sessions_by_native_id ON sessions (native_id) WHERE native_id IS NOT NULL;
CREATE INDEX sessions_by_folder ON sessions (folder);

-- Where a session's log stands and which process writes it: one row a session. Apart from "sessions" because it is
-- written with every batch; being narrow, the rows of many live sessions share a page.
CREATE TABLE logs (
    session     INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    last_seq    INTEGER NOT NULL DEFAULT 0,
    epoch       INTEGER NOT NULL DEFAULT 1,  -- grows when the end of the log may have been lost
    updated     INTEGER NOT NULL,
    open        INTEGER NOT NULL DEFAULT 0,  -- the agent runs, or a prompt waits
    -- The lease. No owner: released, and all that was written is there.
    owner       TEXT,                        -- names one claim
    pid         INTEGER,
    boot        TEXT,                        -- which run of which machine; empty: not known
    namespace   TEXT,                        -- in which the pid counts; empty: not known
    started     INTEGER,                     -- when that process began, in the system's own count; 0: not known
    since       INTEGER,
    until       INTEGER                      -- moved on while the process lives
) STRICT;

-- The events. The row id is the order in which all sessions' events were kept. No foreign key: whoever inserts has
-- just changed the session's row in "logs" in the same transaction.
CREATE TABLE events (
    id          INTEGER PRIMARY KEY,
    session     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    json        TEXT NOT NULL                -- the event as one line
) STRICT;
CREATE UNIQUE INDEX events_by_seq ON events (session, seq);

-- The latest kept state of a session, so that a long log need not be read from its start.
CREATE TABLE checkpoints (
    session     INTEGER PRIMARY KEY REFERENCES sessions (key) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,            -- the state after this event
    state       TEXT NOT NULL                -- JSON, of the hub's own form
) STRICT;

-- Sessions that were removed and whose events are not all deleted yet: that is done bit by bit.
CREATE TABLE removed (
    session     INTEGER PRIMARY KEY
) STRICT;

-- The audit trail: what agents asked, and who ruled on it. It outlives its session: when that is removed only the
-- words go (title, feedback), and who decided what, through which door, when, stays.
CREATE TABLE rulings (
    id          INTEGER PRIMARY KEY,         -- the order in which was asked
    session_id  TEXT NOT NULL,
    question_id TEXT NOT NULL,               -- an agent may use one again, so it is no key
    tool        TEXT,                        -- the tool's name, where the question is about one
    title       TEXT,                        -- the question in one line
    asked       INTEGER,
    -- Empty while nobody answered; a question that was withdrawn stays so.
    option_id   TEXT,
    kind        TEXT,                        -- allowOnce, allowAlways, rejectOnce, rejectAlways
    client      TEXT,                        -- who: the name
    door        TEXT,
    client_id   TEXT,
    role        TEXT,
    settled     INTEGER,
    feedback    TEXT,
    edited      INTEGER                      -- the answer brought its own content or arguments
) STRICT;
CREATE INDEX rulings_by_question ON rulings (session_id, question_id);

-- A2A tasks: stretches of a session's log that clients know by an id.
CREATE TABLE tasks (
    id          TEXT PRIMARY KEY,
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,    -- the A2A contextId
    state       TEXT NOT NULL,               -- submitted, working, input-required, completed, …
    first_seq   INTEGER NOT NULL,            -- the first event that belongs to it
    last_seq    INTEGER,                     -- the last one; empty: it still goes on
    cursor_seq  INTEGER NOT NULL,            -- "state" is that after this event …
    cursor_part INTEGER NOT NULL DEFAULT 0,  -- … and this many of the frames made from it
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL,
    metadata    TEXT NOT NULL DEFAULT '{}'   -- JSON: what the client sent along, which dialect it speaks
) STRICT, WITHOUT ROWID;
CREATE INDEX tasks_by_session ON tasks (session_id, updated);
CREATE INDEX tasks_by_updated ON tasks (updated);

-- Where A2A clients want to be told of a task, and how far they were told. Tokens lie here in the clear: the file is
-- readable by its user alone.
CREATE TABLE push_configs (
    task_id        TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    id             TEXT NOT NULL,            -- unique within its task
    url            TEXT NOT NULL,
    token          TEXT,                     -- sent back to the client as it gave it
    authentication TEXT,                     -- JSON: schemes and credentials
    dialect        TEXT NOT NULL,            -- the form of the frames: 0.3 or 1.0
    created        INTEGER NOT NULL,
    cursor_seq     INTEGER NOT NULL,         -- delivered up to this event …
    cursor_part    INTEGER NOT NULL DEFAULT 0,   -- … and this many of its frames
    attempts       INTEGER NOT NULL DEFAULT 0,   -- that failed since the last delivery
    next_attempt   INTEGER,                  -- not before; empty: as soon as there is something
    last_error     TEXT,
    PRIMARY KEY (task_id, id)
) STRICT, WITHOUT ROWID;
