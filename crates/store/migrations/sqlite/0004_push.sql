-- Push notifications: where clients are notified of a task, and what is still to be delivered there. Nothing was ever
-- stored in the table that this replaces.
DROP TABLE push_configs;

-- Secrets are stored in the clear: the file is readable by its user alone.
CREATE TABLE push_configs (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,   -- never used twice
    task_id     TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    session_id  TEXT NOT NULL,
    id          TEXT NOT NULL,               -- unique within its task
    client      TEXT NOT NULL,               -- who set it
    url         TEXT NOT NULL,
    origin      TEXT NOT NULL,               -- the URL without its path and query
    secrets     TEXT,                        -- JSON: token and credentials
    form        TEXT NOT NULL,               -- dialect and spelling of the notifications
    created     INTEGER NOT NULL,
    -- Everything up to here is a delivery, or needs none.
    epoch       INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    state       TEXT,                        -- in the last delivery, or when it was set
    finished    INTEGER NOT NULL DEFAULT 0,  -- the task cannot change any more
    -- Its queue: the deliveries with status "pending", in the order of their keys.
    due         INTEGER,                     -- when the first one is due; empty: none is pending
    taker       TEXT,                        -- JSON: the process that attempts it now
    taken_until INTEGER,
    UNIQUE (task_id, id)
) STRICT;
CREATE INDEX push_configs_by_session ON push_configs (session_id, key) WHERE NOT finished;
CREATE INDEX push_configs_by_client ON push_configs (client, finished, key);
CREATE INDEX push_configs_by_due ON push_configs (due) WHERE due IS NOT NULL;

-- The deliveries: those that are pending, and the latest others as a log, which outlives their config.
CREATE TABLE push_deliveries (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL,               -- sent with each attempt
    config      INTEGER NOT NULL,            -- its config's key
    session_id  TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    task_id     TEXT NOT NULL,
    config_id   TEXT NOT NULL,
    origin      TEXT NOT NULL,
    state       TEXT NOT NULL,               -- of the task
    body        TEXT,                        -- empty once it is no longer pending
    status      TEXT NOT NULL,               -- pending, delivered, givenUp
    attempts    INTEGER NOT NULL DEFAULT 0,
    http_status INTEGER,                     -- of the last answer
    error       TEXT,
    created     INTEGER NOT NULL,
    updated     INTEGER NOT NULL
) STRICT;
CREATE INDEX push_deliveries_pending ON push_deliveries (config, key) WHERE status = 'pending';
CREATE INDEX push_deliveries_by_task ON push_deliveries (task_id, key);
CREATE INDEX push_deliveries_by_session ON push_deliveries (session_id, key);
