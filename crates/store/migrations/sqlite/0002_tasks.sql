-- The form of the log in which tasks are first kept: "updated" tells all that lists and readers need.
ALTER TABLE tasks DROP COLUMN cursor_seq;
ALTER TABLE tasks DROP COLUMN cursor_part;
