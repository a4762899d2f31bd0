-- What a door made of a session's log up to an event: from there on it can read the log again. Several for each session.
CREATE TABLE door_checkpoints (
    session     INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,            -- after this event
    state       TEXT NOT NULL,               -- JSON, in the door's own form
    PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;
